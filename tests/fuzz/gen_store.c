// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes the corpus that fuzz_store starts from into a directory: `make fuzz-corpus`. The same
 * files each time (but for what another release of zstd compresses differently).
 */
#include "store_image.h"

static const char *in_dir(const char *dir, const char *name)
{
	snprintf(scratch, sizeof(scratch), "%s", dir);
	return in_scratch(name);
}

/* Enough of the same for zstd to be worth it. */
static void write_loop(const char *path)
{
	const struct store_record waits = {STORE_META, .meta = {"waits", "{}"}};
	struct store_writer *w = new_writer(path);

	put_all(w, &waits, 1); /* without it, nobody reads any */
	put_all(w, sample_tables, ARRAY_SIZE(sample_tables));
	for (uint32_t i = 0; i < 400; i++) {
		struct store_record begin = {STORE_BEGIN,
					     .begin = {1000 + i * 700, i / 50 % 2, 1 + i % 2}};
		struct store_record end = {STORE_END, .end = {1300 + i * 700, i / 50 % 2, 0}};

		put_all(w, &begin, 1);
		put_all(w, &end, 1);
		put_all(w, &sample_details[i % ARRAY_SIZE(sample_details)], i > 2);
	}
	store_writer__finish(w, 300000);
}

int main(int argc, char **argv)
{
	static uint8_t plain[65536];
	uint8_t *bytes;
	size_t nr;

	if (argc != 2) {
		fprintf(stderr, "usage: gen_store DIRECTORY\n");
		return 2;
	}
	write_sample(in_dir(argv[1], "sample.kprof"));
	bytes = slurp(in_dir(argv[1], "sample.kprof"), &nr);
	spit(in_dir(argv[1], "cut.kprof"), bytes, nr - 70);
	nr = uncompress(bytes, nr, plain, sizeof(plain));
	spit(in_dir(argv[1], "sample-plain.kprof"), plain, nr);
	store_file_head__pack(STORE_FORMAT_MAJOR, STORE_FORMAT_MINOR + 1, plain);
	spit(in_dir(argv[1], "newer-minor.kprof"), plain, nr);
	free(bytes);
	write_loop(in_dir(argv[1], "loop.kprof"));
	bytes = slurp(in_dir(argv[1], "loop.kprof"), &nr);
	nr = uncompress(bytes, nr, plain, sizeof(plain));
	spit(in_dir(argv[1], "loop-plain.kprof"), plain, nr);
	free(bytes);
	store_writer__finish(new_writer(in_dir(argv[1], "empty.kprof")), 1);
	return unit_failures_here != 0;
}
