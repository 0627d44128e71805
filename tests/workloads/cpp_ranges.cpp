// SPDX-License-Identifier: BSD-2-Clause
// Ranges that an extension of PyTorch opens in C++, one inside the other (cpp_ranges.py).
#include <ATen/record_function.h>

extern "C" void kprof_test_ranges(void (*inside)())
{
	RECORD_USER_SCOPE("extension: user scope");
	{
		RECORD_FUNCTION("extension: function", std::vector<c10::IValue>());
		inside();
	}
}
