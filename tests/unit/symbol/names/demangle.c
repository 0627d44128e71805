// SPDX-License-Identifier: BSD-2-Clause
#include "symbol/names/names.h"
#include "unit.h"

static void check(char *(*fn)(const char *), const char *mangled, const char *want)
{
	char *got = fn(mangled);

	CHECK_STR(got, want);
	free(got);
}

static void symbols(void)
{
	check(demangle, "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE",
	      "at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&, c10::Scalar const&)");
	check(demangle, "_ZNK5torch8autograd6PyNode4nameB5cxx11Ev",
	      "torch::autograd::PyNode::name[abi:cxx11]() const");
	check(demangle, "malloc", "malloc");
	check(demangle, "", "");
	/* One letter is a type's mangled name, but no symbol's. */
	check(demangle, "i", "i");
	check(demangle, "_Zbroken", "_Zbroken");
}

static void types(void)
{
	check(demangle_type, "N5torch8autograd9generated14AddmmBackward0E",
	      "torch::autograd::generated::AddmmBackward0");
	check(demangle_type, "*N12_GLOBAL__N_14NodeE", "(anonymous namespace)::Node");
	check(demangle_type, "not a type", "not a type");
}

/* Names of rustc 1.95; what they mean is what the crate rustfilt 0.2.2 says. */
static void rust(void)
{
	check(demangle, "_RINvNtCs6GmmlP4bgsG_1r5inner7genericlKj3_EB4_",
	      "r::inner::generic::<i32, 3>");
	check(demangle, "_RNvXs1g_NtCsgEmfK2I1SDS_4core3fmtRlNtB6_5Debug3fmtCs6GmmlP4bgsG_1r",
	      "<&i32 as core::fmt::Debug>::fmt");
	check(demangle, "_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h4819d9ec2db1a450E",
	      "<&T as core::fmt::Debug>::fmt");
	check(demangle, "_ZN1r11Sq$LT$T$GT$5twice17hfb283a471371a0f3E", "r::Sq<T>::twice");
	check(demangle, "_RNvC", "_RNvC");
	/* No hash at its end: a C++ name. */
	check(demangle, "_ZN1r17hello_hello_helloE", "r::hello_hello_hello");
}

static void check_short(const char *mangled, const char *want)
{
	char *whole = demangle(mangled), *got = demangle_short(mangled, whole);

	CHECK_STR(got, want);
	free(got);
	free(whole);
}

static void shortened(void)
{
	check_short("_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE",
		    "at::_ops::add_Tensor::call");
	check_short("_ZNK5torch8autograd6PyNode4nameB5cxx11Ev", "torch::autograd::PyNode::name");
	/* int std::max<int>(…) has a return type in front. */
	check_short("_ZSt3maxIiERKT_S2_S2_", "std::max<...>");
	check_short("_ZN12_GLOBAL__N_13addIfEEvPT_", "(anonymous namespace)::add<...>");
	check_short("_ZZN3foo3barEiENKUlfE_clEf", "foo::bar::{lambda#1}::operator()");
	check_short("_ZZNK3foo3barEiENKUlfE_clEf", "foo::bar::{lambda#1}::operator()");
	check_short("_ZThn16_N3foo3barEv", "non-virtual thunk to foo::bar");
	check_short("_ZTVN2at6TensorE", "vtable for at::Tensor");
	check_short("_ZN3foo3barEv.cold", "foo::bar");
	check_short("_ZN3fooC2Ev", "foo::foo");
	check_short("_ZN3fooD0Ev", "foo::~foo");
	check_short("main", "main");
	check_short("py::run(int) <x>:/a b.py", "py::run(int) <x>:/a b.py");
	check_short("_RNCINvNtCsjrHSEGnQ3l9_3std2rt10lang_startuE0Cs6GmmlP4bgsG_1r",
		    "std::rt::lang_start::<...>::{closure#0}");
	check_short("_RNvXs3_NtNtCsgEmfK2I1SDS_4core4hash3sipINtB5_6HasherNtB5_11Sip13RoundsENtB7_"
		    "6Hasher5writeCs6GmmlP4bgsG_1r",
		    "<core::hash::sip::Hasher<...> as core::hash::Hasher>::write");
}

static void shortened_operators(void)
{
	check_short("_ZN3foolsIcEERS_T_", "foo::operator<<<...>");
	check_short("_ZN3fooltERKS_", "foo::operator<");
	check_short("_ZltI3fooEbRKT_S3_", "operator<<...>");
	check_short("_ZN3foossERKS_", "foo::operator<=>");
	check_short("_ZNK3fooptEv", "foo::operator->");
	check_short("_ZNK3foopmEi", "foo::operator->*");
	check_short("_ZN3fooclEi", "foo::operator()");
	check_short("_ZN3fooixEi", "foo::operator[]");
	check_short("_ZN3foocvbEv", "foo::operator bool");
	check_short("_ZN3foocvSt6vectorIiSaIiEEEv", "foo::operator std::vector<...>");
	check_short("_ZN3foonwEm", "foo::operator new");
	check_short("_ZN3foonaEm", "foo::operator new[]");
	check_short("_ZN3fooaSIiEERS_T_", "foo::operator=<...>");
	/* An argument that names an operator, and one that compares. */
	check_short("_ZN3appIXadL_ZltRK3fooS3_EEEEvv", "app<...>");
}

static void shortened_return_types(void)
{
	/*
	 * A function that returns a pointer to a function; one whose type is worked out from an
	 * expression.
	 */
	check_short("_ZN1n3getIiEEPFvcET_", "n::get<...>");
	check_short("_ZN1n3addIiiEEDTplfp_fp0_ET_T0_", "n::add<...>");
}

/* What GNU's demangler refuses, its own compiler having made it: at least where it lies. */
static void not_demangled(void)
{
	check_short(
		"_ZN2at8internal15invoke_parallelIZNS_12parallel_forIZ11compute_cpuIaEvPKT_PKlPS4_"
		"llEUlllE_EEvlllRS5_EUlllE_EEvlllSB_._omp_fn.0",
		"at::internal::invoke_parallel<...>");
	check_short("_Zbroken", "_Zbroken");
	check_short("_Z99x", "_Z99x");
	check_short("_ZN99999999999999999999x", "_ZN99999999999999999999x");
	check_short("_ZN12_GLOBAL__N_13addI!", "(anonymous namespace)::add<...>");
}

/* Each level says the one before it twice. */
static char *doubling(unsigned int levels)
{
	static const char base36[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char *name = NULL;
	size_t bytes;
	FILE *out = open_memstream(&name, &bytes);

	fputs("_Z1fI1aEv", out); /* the levels are its parameters */
	for (unsigned int i = 0; i < levels; i++) {
		/*
		 * S_ is f, S0_ to S3_ are a, b, a, a, S4_ is the first b<>; each level adds b and
		 * b<>.
		 */
		unsigned int before = 2 * i + 2;

		fputs("1bI", out);
		for (int twice = 0; twice < 2; twice++) {
			if (!i)
				fputs("1a", out);
			else if (before < 36)
				fprintf(out, "S%c_", base36[before]);
			else
				fprintf(out, "S%u%c_", before / 36, base36[before % 36]);
		}
		fputc('E', out);
	}
	fclose(out);
	return name;
}

static char *repeated(const char *head, char c, size_t times, const char *tail)
{
	size_t bytes = strlen(head) + times + strlen(tail) + 1;
	char *name = malloc(bytes);

	snprintf(name, bytes, "%s%*s%s", head, (int)times, "", tail);
	memset(name + strlen(head), c, times);
	return name;
}

/* Names made to take all memory, all time or all stack: they stay as they are. */
static void hostile(void)
{
	static const size_t times[] = {500, 1500, 60000, 200000};
	char *name = doubling(3), *got;

	check(demangle, name,
	      "void f<a>(b<a, a>, b<b<a, a>, b<a, a> >, b<b<b<a, a>, b<a, a> >, b<b<a, a>, b<a, a> > >)");
	free(name);
	name = doubling(60);
	check(demangle, name, name);
	free(name);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		name = repeated("_Z1f", 'P', times[i], "i");
		got = demangle(name);
		CHECK(got && *got);
		free(got);
		free(name);
		name = repeated("_R", 'N', times[i], "");
		check(demangle, name, name);
		free(name);
		name = repeated("<", '<', times[i], "");
		got = demangle_short("_Z", name);
		CHECK(got && *got);
		free(got);
		free(name);
	}
	name = repeated("_Z2000", 'x', 2000, "v");
	got = demangle(name);
	CHECK_EQ(strlen(got), 2002); /* longer than libiberty's own limit, and no harm in it */
	free(got);
	free(name);
}

UNIT_MAIN(TEST(symbols), TEST(types), TEST(rust), TEST(shortened), TEST(shortened_operators),
	  TEST(shortened_return_types), TEST(not_demangled), TEST(hostile))
