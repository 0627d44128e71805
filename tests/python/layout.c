// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where one CPython's own headers say that its fields lie, in the names of struct kprof_python:
 * what the table of user/symbol/python/layout.c was made of, and is compared with.
 */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#endif
#include "internal/pycore_ceval.h"
#include "internal/pycore_gil.h"
#include "internal/pycore_pystate.h"
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_code.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_moduleobject.h"
#include "internal/pycore_object.h"
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_interpframe.h"
#endif

#define SAY(name, value) printf("%s %zu\n", #name, (size_t)(value))
#define AT(name, type, field) SAY(name, offsetof(type, field))

int main(void)
{
	AT(runtime_interpreters, _PyRuntimeState, interpreters.head);
	AT(interp_next, struct _is, next);
#if PY_VERSION_HEX >= 0x030b0000
	AT(interp_threads, struct _is, threads.head);
#else
	AT(interp_threads, struct _is, tstate_head);
#endif
#if PY_VERSION_HEX >= 0x030c0000
	AT(interp_gil, struct _is, ceval.gil);
#else
	AT(runtime_gil, _PyRuntimeState, ceval.gil);
#endif
	AT(gil_holder, struct _gil_runtime_state, last_holder);
	AT(gil_locked, struct _gil_runtime_state, locked);
	SAY(gil_bytes, sizeof(struct _gil_runtime_state));
#ifdef Py_GIL_DISABLED
	AT(gil_enabled, struct _gil_runtime_state, enabled);
#endif
	AT(tstate_prev, PyThreadState, prev);
	AT(tstate_next, PyThreadState, next);
	AT(tstate_interp, PyThreadState, interp);
	AT(tstate_thread, PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x030d0000
	AT(tstate_frame, PyThreadState, current_frame);
#elif PY_VERSION_HEX >= 0x030b0000
	AT(tstate_frame, PyThreadState, cframe);
	AT(cframe_frame, _PyCFrame, current_frame);
#else
	AT(tstate_frame, PyThreadState, frame);
#endif
#if PY_VERSION_HEX >= 0x030b0000
	AT(tstate_native, PyThreadState, native_thread_id);
	AT(frame_previous, _PyInterpreterFrame, previous);
	AT(code_instrs, PyCodeObject, co_code_adaptive);
	AT(code_qualname, PyCodeObject, co_qualname);
	AT(code_traceable, PyCodeObject, _co_firsttraceable);
#else
	AT(frame_previous, PyFrameObject, f_back);
	AT(frame_code, PyFrameObject, f_code);
	AT(frame_instr, PyFrameObject, f_lasti);
#endif
#if PY_VERSION_HEX >= 0x030d0000
	AT(frame_code, _PyInterpreterFrame, f_executable);
	AT(frame_instr, _PyInterpreterFrame, instr_ptr);
#elif PY_VERSION_HEX >= 0x030b0000
	AT(frame_code, _PyInterpreterFrame, f_code);
	AT(frame_instr, _PyInterpreterFrame, prev_instr);
#endif
#if PY_VERSION_HEX >= 0x030e0000
	SAY(frame_owner_shim, FRAME_OWNED_BY_INTERPRETER);
#elif PY_VERSION_HEX >= 0x030c0000
	SAY(frame_owner_shim, FRAME_OWNED_BY_CSTACK);
#endif
#if PY_VERSION_HEX >= 0x030c0000
	AT(frame_owner, _PyInterpreterFrame, owner);
#elif PY_VERSION_HEX >= 0x030b0000
	AT(frame_entry, _PyInterpreterFrame, is_entry);
#endif
#if PY_VERSION_HEX >= 0x030e0000 && defined(Py_GIL_DISABLED)
	AT(frame_tlbc, _PyInterpreterFrame, tlbc_index);
	AT(code_tlbc, PyCodeObject, co_tlbc);
#endif
	AT(code_firstlineno, PyCodeObject, co_firstlineno);
	AT(code_filename, PyCodeObject, co_filename);
	AT(code_name, PyCodeObject, co_name);
#if PY_VERSION_HEX >= 0x030a0000
	AT(code_lines, PyCodeObject, co_linetable);
#else
	AT(code_lines, PyCodeObject, co_lnotab);
#endif
	AT(bytes_length, PyBytesObject, ob_base.ob_size);
	AT(bytes_value, PyBytesObject, ob_sval);
	AT(str_length, PyASCIIObject, length);
	AT(str_state, PyASCIIObject, state);
	SAY(str_ascii, sizeof(PyASCIIObject));
	SAY(str_compact, sizeof(PyCompactUnicodeObject));
#if PY_VERSION_HEX >= 0x030c0000
	AT(interp_modules, struct _is, imports.modules);
#else
	AT(interp_modules, struct _is, modules);
#endif
	AT(object_type, PyObject, ob_type);
	AT(type_flags, PyTypeObject, tp_flags);
	AT(type_basicsize, PyTypeObject, tp_basicsize);
	AT(type_dictoffset, PyTypeObject, tp_dictoffset);
	AT(dict_keys, PyDictObject, ma_keys);
	AT(dict_values, PyDictObject, ma_values);
#if PY_VERSION_HEX >= 0x030b0000
	AT(type_keys, PyHeapTypeObject, ht_cached_keys);
	AT(module_dict, PyModuleObject, md_dict);
#else
	SAY(module_dict, sizeof(PyObject)); /* PyModuleObject is told to nobody, but begins so */
#endif
#if PY_VERSION_HEX >= 0x030d0000
	SAY(managed_dict, -MANAGED_DICT_OFFSET);
#elif PY_VERSION_HEX >= 0x030b0000
	SAY(managed_dict, 24);              /* _PyObject_ManagedDictPointer */
#endif
	AT(type_name, PyTypeObject, tp_name);
	AT(type_dict, PyTypeObject, tp_dict);
	AT(function_code, PyFunctionObject, func_code);
	AT(code_argcount, PyCodeObject, co_argcount);
	AT(code_flags, PyCodeObject, co_flags);
#if PY_VERSION_HEX >= 0x030b0000
	AT(frame_locals, _PyInterpreterFrame, localsplus);
#else
	AT(frame_locals, PyFrameObject, f_localsplus);
#endif
#if PY_VERSION_HEX < 0x030d0000
	AT(dict_version, PyDictObject, ma_version_tag);
#endif
	return 0;
}
