// SPDX-License-Identifier: BSD-2-Clause
#include "model/report/peak.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "util/util.h"

/*
 * Operations of one multiprocessor in one clock, from NVIDIA's white papers and data sheets (their
 * figures ÷ multiprocessors ÷ boost clock). Half, BFloat16, and the 8-bit ones: by tensor cores,
 * with sums of 32 bits; GeForce devices of 8.6, 8.9 and 12.0 do half of that. Double: with tensor
 * cores where they do doubles.
 */
static const struct {
	uint32_t major, minor;
	uint32_t half, bfloat, tf32, eight_bits, single, twice;
} table[] = {
	{7, 0, 1024, 0, 0, 0, 128, 64},             /* V100 */
	{7, 5, 1024, 0, 0, 0, 128, 4},              /* T4 */
	{8, 0, 2048, 2048, 1024, 0, 128, 128},      /* A100 */
	{8, 6, 1024, 1024, 512, 0, 256, 4},         /* A10, A40 */
	{8, 9, 1024, 1024, 512, 2048, 256, 4},      /* L4, L40 */
	{9, 0, 4096, 4096, 2048, 8192, 256, 256},   /* H100, H200 */
	{10, 0, 8192, 8192, 4096, 16384, 256, 128}, /* B200 */
};

static double number(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

	return cJSON_IsNumber(v) && v->valuedouble > 0 ? v->valuedouble : 0;
}

void peak_read(const struct kprof_capture *c, pid_t pid, uint32_t device, struct peak *out)
{
	const char *json;
	char key[48];
	cJSON *o;

	*out = (struct peak){0};
	snprintf(key, sizeof(key), "device.%u.%u", (unsigned int)pid, device);
	json = kprof_capture_meta(c, key);
	o = json ? cJSON_Parse(json) : NULL;
	if (!o)
		return;
	if (number(o, "computeMajor") < 1000 && number(o, "computeMinor") < 1000) {
		out->major = (uint32_t)number(o, "computeMajor");
		out->minor = (uint32_t)number(o, "computeMinor");
	}
	out->clocks_per_s = number(o, "numSms") * number(o, "clockRateKHz") * 1000;
	out->bytes_per_s = number(o, "memoryBandwidth");
	cJSON_Delete(o);
}

double peak_flops_per_s(const struct peak *p, const char *type, bool tf32)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (table[i].major != p->major || table[i].minor != p->minor)
			continue;
		if (!strcmp(type, "c10::Half"))
			return table[i].half * p->clocks_per_s;
		if (!strcmp(type, "c10::BFloat16"))
			return table[i].bfloat * p->clocks_per_s;
		if (!strncmp(type, "c10::Float8_", strlen("c10::Float8_")))
			return table[i].eight_bits * p->clocks_per_s;
		if (!strcmp(type, "double"))
			return table[i].twice * p->clocks_per_s;
		if (!strcmp(type, "float"))
			return (tf32 ? table[i].tf32 : table[i].single) * p->clocks_per_s;
	}
	return 0;
}
