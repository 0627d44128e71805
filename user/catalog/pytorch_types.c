// SPDX-License-Identifier: BSD-2-Clause
/*
 * The names of the types of tensors' elements, as torch.profiler shows them, by the number that a
 * tensor has of its type (c10::ScalarType). Later releases only add numbers: checked with 2.3.1 and
 * 2.15.0. (In 1.13 number 18 is that of an undefined tensor, which is told by its class.)
 */
#include "catalog/catalog.h"
#include "util/util.h"

static const char *const types[] = {
	"unsigned char",
	"signed char",
	"short int",
	"int",
	"long int",
	"c10::Half",
	"float",
	"double",
	"c10::complex<c10::Half>",
	"c10::complex<float>",
	"c10::complex<double>",
	"bool",
	"c10::qint8",
	"c10::quint8",
	"c10::qint32",
	"c10::BFloat16",
	"c10::quint4x2",
	"c10::quint2x4",
	"c10::bits1x8",
	"c10::bits2x4",
	"c10::bits4x2",
	"c10::bits8",
	"c10::bits16",
	"c10::Float8_e5m2",
	"c10::Float8_e4m3fn",
	"c10::Float8_e5m2fnuz",
	"c10::Float8_e4m3fnuz",
	"short unsigned int",
	"unsigned int",
	"long unsigned int",
	"c10::dummy_uint1_7_t<1>",
	"c10::dummy_uint1_7_t<2>",
	"c10::dummy_uint1_7_t<3>",
	"c10::dummy_uint1_7_t<4>",
	"c10::dummy_uint1_7_t<5>",
	"c10::dummy_uint1_7_t<6>",
	"c10::dummy_uint1_7_t<7>",
	"c10::dummy_int1_7_t<1>",
	"c10::dummy_int1_7_t<2>",
	"c10::dummy_int1_7_t<3>",
	"c10::dummy_int1_7_t<4>",
	"c10::dummy_int1_7_t<5>",
	"c10::dummy_int1_7_t<6>",
	"c10::dummy_int1_7_t<7>",
	"c10::Float8_e8m0fnu",
	"c10::Float4_e2m1fn_x2",
	"c10::complex<c10::BFloat16>",
};

const char *catalog_element_type(uint32_t number)
{
	return number < ARRAY_SIZE(types) ? types[number] : NULL;
}

static const struct {
	const char *name;
	uint32_t bytes;
} scalar_types[] = {
	[0] = {"Byte", 1},
	[1] = {"Char", 1},
	[2] = {"Short", 2},
	[3] = {"Int", 4},
	[4] = {"Long", 8},
	[5] = {"Half", 2},
	[6] = {"Float", 4},
	[7] = {"Double", 8},
	[8] = {"ComplexHalf", 4},
	[9] = {"ComplexFloat", 8},
	[10] = {"ComplexDouble", 16},
	[11] = {"Bool", 1},
	[12] = {"QInt8", 1},
	[13] = {"QUInt8", 1},
	[14] = {"QInt32", 4},
	[15] = {"BFloat16", 2},
	[23] = {"Float8_e5m2", 1},
	[24] = {"Float8_e4m3fn", 1},
	[25] = {"Float8_e5m2fnuz", 1},
	[26] = {"Float8_e4m3fnuz", 1},
	[27] = {"UInt16", 2},
	[28] = {"UInt32", 4},
	[29] = {"UInt64", 8},
};

const char *catalog_scalar_type(uint32_t number)
{
	return number < ARRAY_SIZE(scalar_types) ? scalar_types[number].name : NULL;
}

uint32_t catalog_scalar_bytes(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(scalar_types); i++)
		if (scalar_types[i].name && !strcmp(scalar_types[i].name, name))
			return scalar_types[i].bytes;
	return 0;
}

uint32_t catalog_element_bytes(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(types) && i < ARRAY_SIZE(scalar_types); i++)
		if (!strcmp(types[i], name))
			return scalar_types[i].bytes;
	return 0;
}
