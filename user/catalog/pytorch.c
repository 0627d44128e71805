// SPDX-License-Identifier: BSD-2-Clause
/*
 * PyTorch, seen from outside. Each row says which functions correspond to which of torch.profiler's
 * events, and where the events' names are found. Measured on 1.13.1 (Debian), 2.3.1 and 2.15.0
 * (PyPI). Nothing here is tied to a release: a row whose symbols a build lacks places no probe, and
 * offsets that differ are learnt from the build's own code.
 *
 * Mangled names follow the Itanium C++ ABI. Arguments are numbered as registers: in a function that
 * returns an object by value, the first is the hidden pointer to the result.
 */
#include "catalog/catalog.h"
#include "kprof/options.h"
#include "util/util.h"

#define SCOPE(NAME) (1u << KPROF_SCOPE_##NAME)
#define TORCH_LIBS "libtorch_cpu.so* libtorch_python.so*"
#define CALL_BOXED \
	"_ZNK3c1010Dispatcher9callBoxedERKNS_14OperatorHandleEPSt6vectorINS_6IValueESaIS5_EE"

/* Names of boxed calls through the dispatcher that are torch's own bookkeeping, not operators. */
#define BOXED_IGNORED "profiler::_record_function_enter*"
#define BOXED_RANGE_END "profiler::_record_function_exit"

static const char *const torch_libraries[] = {"libtorch_cpu.so*", "libtorch_python.so*", NULL};

/*
 * These are called through at::_ops like every operator, but return without the dispatcher:
 * torch.profiler never shows them.
 */
static const char *const hidden_ops[] = {"aten::size",     "aten::is_leaf",    "aten::output_nr",
					 "aten::_version", "aten::is_complex", NULL};

/*
 * The operators that training and inference spend their time in. They are probed first where probes
 * are scarce.
 */
#define COMMON_OPS                                                                       \
	"aten::add aten::add_ aten::sub aten::mul aten::mul_ aten::div aten::div_ "      \
	"aten::mm aten::bmm aten::matmul aten::addmm aten::baddbmm aten::linear "        \
	"aten::conv2d aten::conv1d aten::convolution* aten::_convolution "               \
	"aten::batch_norm aten::native_batch_norm aten::*layer_norm aten::relu "         \
	"aten::relu_ aten::gelu* aten::silu* aten::tanh aten::sigmoid aten::softmax "    \
	"aten::_softmax aten::scaled_dot_product_attention aten::embedding "             \
	"aten::dropout aten::sum aten::mean aten::copy_ aten::_to_copy aten::to "        \
	"aten::contiguous aten::clone aten::cat aten::stack aten::view aten::reshape "   \
	"aten::transpose aten::t aten::permute aten::select aten::index "                \
	"aten::index_select aten::gather aten::empty aten::zeros aten::zero_ "           \
	"aten::fill_ aten::cross_entropy_loss aten::nll_loss aten::max_pool2d* "         \
	"aten::addcmul_ aten::addcdiv_ aten::sqrt aten::item aten::_local_scalar_dense " \
	"aten::detach aten::lstm"

/* A method of a class of c10d, whose name is given with its length. */
#define METHOD(in, method, shown, of)                                                           \
	.source = "distributed", .library = in, .symbols = "_ZN4c10d" method, .category = (of), \
	.shape = CATALOG_SPAN, .naming = CATALOG_NAME_FIXED, .name = (shown), .optional = true
/* A collective of the process group: torch shows it under the operator's schema name. */
#define C10D_OP(method, op)                                                                       \
	{                                                                                         \
		METHOD(TORCH_LIBS, "12ProcessGroup" method "ERSt6vector*", "c10d::" op, "cpu_op") \
	}

/*
 * What is read at a call of a backend (enum catalog_collective_arg). Registers: the hidden result,
 * the backend, its arguments. Where in the objects it lies is learnt (capture/probe/collectives.c).
 */
#define OF_BACKEND_BUT_NUMBER                                        \
	[COLLECTIVE_ARG_RANK] = {.from = {KPROF_REG_ARG2, 1, 0, 0}}, \
	[COLLECTIVE_ARG_NAME] = {.from = {KPROF_REG_ARG2, 2, 0, 0}}, \
	[COLLECTIVE_ARG_NAME_REST] = {.from = {KPROF_REG_ARG2, 2, 8, 0}}
#define OF_BACKEND \
	OF_BACKEND_BUT_NUMBER, [COLLECTIVE_ARG_SEQUENCE] = {.from = {KPROF_REG_ARG2, 1, 0, 0}}
/* What options have; .off and whether it is read at all are learnt. */
#define ROOT(n) [COLLECTIVE_ARG_ROOT] = {.from = {(n), 1, 0, 0}}
#define REDUCTION(n) [COLLECTIVE_ARG_REDUCTION] = {.from = {(n), 1, 0, 0}}
/* A std::vector of one tensor, a tensor, neither */
#define VECTOR(n, ...)                                              \
	.args = {[COLLECTIVE_ARG_END] = {.from = {(n), 1, 0, 8}},   \
		 [COLLECTIVE_ARG_BEGIN] = {.from = {(n), 1, 0, 0}}, \
		 [COLLECTIVE_ARG_NUMEL] = {.from = {(n), 3, 0, 0}}, \
		 [COLLECTIVE_ARG_TYPE] = {.from = {(n), 3, 0, 0}},  \
		 OF_BACKEND,                                        \
		 __VA_ARGS__}
/* A std::vector of one tensor, and the rank of whom it goes to or comes from; of anybody */
#define PEER_VECTOR(n, peer_reg)                                    \
	.args = {[COLLECTIVE_ARG_END] = {.from = {(n), 1, 0, 8}},   \
		 [COLLECTIVE_ARG_BEGIN] = {.from = {(n), 1, 0, 0}}, \
		 [COLLECTIVE_ARG_NUMEL] = {.from = {(n), 3, 0, 0}}, \
		 [COLLECTIVE_ARG_TYPE] = {.from = {(n), 3, 0, 0}},  \
		 OF_BACKEND_BUT_NUMBER,                             \
		 [COLLECTIVE_ARG_SEQUENCE] = {.from = {(peer_reg), 0, 0, 0}}}
#define TENSOR(n, ...)                                                       \
	.args = {[COLLECTIVE_ARG_END] = {.from = {KPROF_REG_ARG2, 0, 0, 0}}, \
		 [COLLECTIVE_ARG_NUMEL] = {.from = {(n), 2, 0, 0}},          \
		 [COLLECTIVE_ARG_TYPE] = {.from = {(n), 2, 0, 0}},           \
		 OF_BACKEND,                                                 \
		 __VA_ARGS__}
#define NO_TENSOR .args = {[COLLECTIVE_ARG_END] = {.from = {KPROF_REG_ARG2, 0, 0, 0}}, OF_BACKEND}
#define ARG3 KPROF_REG_ARG3
#define ARG4 KPROF_REG_ARG4
#define ARG5 KPROF_REG_ARG5

#define RANKS_OF(class) "_ZNK4c10d" class "10groupRanksEv"
#define SEQUENCE_OF(class) "_ZN4c10d" class "25getSequenceNumberForGroupEv"
/* c10d::ReduceOp::RedOpType */
static const char *const reductions[] = {"SUM",  "AVG", "PRODUCT", "MIN",        "MAX",
					 "BAND", "BOR", "BXOR",    "PREMUL_SUM", NULL};

/* The work of a backend is a range that torch opens as if the user did. */
#define BACKEND_OP(in, class, of_backend, method, shown, kineto, of, with, has, ...)            \
	{                                                                                       \
		METHOD(in, class method, of_backend ":" shown, "user_annotation"), __VA_ARGS__, \
			.collective = &(const struct catalog_collective)                        \
		{                                                                               \
			.name = (kineto), .backend = (of_backend), .all = "0",                  \
			.size = CATALOG_SIZE_##of, .peer = CATALOG_PEER_##with,                 \
			.options = CATALOG_OPTIONS_##has, .reductions = reductions,             \
			.ranks = RANKS_OF(class), .sequence = SEQUENCE_OF(class)                \
		}                                                                               \
	}
/* OF: a backend's collective with options that are read */
#define GLOO_OF(has, method, op, kineto, of, ...)                                               \
	BACKEND_OP(TORCH_LIBS, "16ProcessGroupGloo", "gloo", method, op, kineto, of, NONE, has, \
		   __VA_ARGS__)
#define GLOO_OP(...) GLOO_OF(NONE, __VA_ARGS__)
#define GLOO_PEER(method, op, with, reg)                                                          \
	BACKEND_OP(TORCH_LIBS, "16ProcessGroupGloo", "gloo", method "ERSt6vector*", op, op, SAME, \
		   with, NONE, PEER_VECTOR(ARG3, reg))
#define NCCL_OF(has, method, op, kineto, of, ...)                                             \
	BACKEND_OP("libtorch_cuda.so*", "16ProcessGroupNCCL", "nccl", method, op, kineto, of, \
		   NONE, has, __VA_ARGS__)
#define NCCL_OP(...) NCCL_OF(NONE, __VA_ARGS__)
#define NCCL_PEER(method, op, with, reg)                                                         \
	BACKEND_OP("libtorch_cuda.so*", "16ProcessGroupNCCL", "nccl", method "ERSt6vector*", op, \
		   op, SAME, with, NONE, PEER_VECTOR(ARG3, reg))
#define TENSORS "ERSt6vector*"
#define TWO_TENSORS "ERN2at6TensorES3_*"

#define MEMORY(functions, shown, of, ...)                                          \
	{                                                                          \
		.source = "memory", .library = "libc10.so*", .symbols = functions, \
		.category = "cpu_instant_event", .shape = CATALOG_INSTANT,         \
		.naming = CATALOG_NAME_FIXED, .name = (shown), .memory = (of),     \
		.args = {__VA_ARGS__}, .lost = shown " (--memory)"                 \
	}
#define MEMORY_ADDR(in)                                                \
	{                                                              \
		"Addr", CATALOG_ARG_POINTER, {.reg = (in)}, NULL, NULL \
	}
#define MEMORY_BYTES(key, in)                                     \
	{                                                         \
		key, CATALOG_ARG_BYTES, {.reg = (in)}, NULL, NULL \
	}
#define MEMORY_DEVICE(in)                                                   \
	{                                                                   \
		"Device", CATALOG_ARG_UNSIGNED32, {.reg = (in)}, NULL, NULL \
	}
/*
 * A method of ProfiledCPUMemoryReporter: this, …. Every allocator of the CPU's memory calls these
 * right after it has allocated, and right before it frees, whether or not anybody profiles.
 */
#define CPU_MEMORY(method) "_ZN3c1025ProfiledCPUMemoryReporter" method

static const struct catalog_row rows[] = {
	{
		/* Every operator that Python or C++ calls: one class per operator and overload. */
		.source = "operators",
		.library = "libtorch_cpu.so*",
		.symbols = "_ZN2at4_ops*4callE*",
		.category = "cpu_op",
		.scope = SCOPE(FUNCTION),
		.shape = CATALOG_SPAN,
		.naming = CATALOG_NAME_SCHEMA,
		.inputs = CATALOG_INPUTS_SIGNATURE,
		.sequence = KPROF_SEQUENCE_TENSOR,
		.lost = "operators (aten::…)",
	},
	{
		/* Engine::evaluate_function(shared_ptr<GraphTask>&, Node*, …): this, task, node */
		.source = "autograd",
		.library = "libtorch_cpu.so*",
		.symbols = "_ZN5torch8autograd6Engine17evaluate_functionE*",
		.category = "cpu_op",
		.scope = SCOPE(FUNCTION),
		.shape = CATALOG_SPAN,
		.naming = CATALOG_NAME_VTABLE,
		.name = "autograd::engine::evaluate_function: %s",
		.strip = "torch::autograd::",
		.keep_scope = "torch::autograd::AccumulateGrad",
		.value = {.reg = KPROF_REG_ARG3, .nr_off = 1, .off = {0}},
		/*
		 * A node defined in Python is named by its type: the tp_name of its PyObject's
		 * type.
		 */
		.text = {.reg = KPROF_REG_ARG3, .nr_off = 3, .off = {0, 8, 24}},
		.layout = CATALOG_LAYOUT_FIELD,
		.layout_library = "libtorch_python.so*",
		.layout_symbol = "_ZNK5torch8autograd6PyNode4name*Ev",
		.layout_at = 0,
		.text_for_vtable = "_ZTVN5torch8autograd6PyNodeE",
		.sequence = KPROF_SEQUENCE_AROUND,
		.sequence_arg = KPROF_REG_ARG3,
		.lost = "autograd::engine::evaluate_function: …",
	},
	{
		/* Node::operator()(variable_list&&): hidden result, this, the vector */
		.source = "autograd",
		.library = TORCH_LIBS,
		.symbols = "_ZN5torch8autograd4NodeclEOSt6vectorIN2at6TensorESaIS4_EE",
		.category = "cpu_op",
		.scope = SCOPE(BACKWARD_FUNCTION),
		.shape = CATALOG_SPAN,
		.naming = CATALOG_NAME_VTABLE,
		.strip = "torch::autograd::",
		.keep_scope = "torch::autograd::AccumulateGrad",
		.value = {.reg = KPROF_REG_ARG2, .nr_off = 1, .off = {0}},
		.text = {.reg = KPROF_REG_ARG2, .nr_off = 3, .off = {0, 8, 24}},
		.layout = CATALOG_LAYOUT_FIELD,
		.layout_library = "libtorch_python.so*",
		.layout_symbol = "_ZNK5torch8autograd6PyNode4name*Ev",
		.layout_at = 0,
		.text_for_vtable = "_ZTVN5torch8autograd6PyNodeE",
		.inputs = CATALOG_INPUTS_VECTOR_ARG3,
		.sequence = KPROF_SEQUENCE_NODE,
		.sequence_arg = KPROF_REG_ARG2,
		.lost = "the span of each autograd node itself (AddmmBackward0, …)",
	},
	{
		/*
		 * Dispatcher::callBoxed(OperatorHandle const&, Stack*): *handle → definition → name
		 */
		.source = "boxed",
		.library = TORCH_LIBS,
		.symbols = CALL_BOXED,
		.category = "cpu_op",
		.scope = SCOPE(FUNCTION),
		.shape = CATALOG_SPAN,
		.naming = CATALOG_NAME_TEXT,
		.text = {.reg = KPROF_REG_ARG2, .nr_off = 2, .off = {0, 0}},
		.range_end_text = BOXED_RANGE_END,
		.ignore_text = BOXED_IGNORED,
		.inputs = CATALOG_INPUTS_BOXED,
		.sequence = KPROF_SEQUENCE_MAYBE,
		.lost = "operators called boxed (TorchScript, torch.ops, custom operators)",
	},
	{
		/* The compiler's local clones of callBoxed(), without the unused `this`. */
		.source = "boxed",
		.library = TORCH_LIBS,
		.symbols = CALL_BOXED ".isra.*",
		.category = "cpu_op",
		.scope = SCOPE(FUNCTION),
		.shape = CATALOG_SPAN,
		.naming = CATALOG_NAME_TEXT,
		.text = {.reg = KPROF_REG_ARG1, .nr_off = 2, .off = {0, 0}},
		.range_end_text = BOXED_RANGE_END,
		.ignore_text = BOXED_IGNORED,
		.inputs = CATALOG_INPUTS_BOXED,
		.sequence = KPROF_SEQUENCE_MAYBE,
		.optional = true,
	},
	{
		/*
		 * torch.profiler.record_function: hidden result, name (a std::string: text first)
		 */
		.source = "annotations",
		.library = "libtorch_cpu.so*",
		.symbols = "_ZN5torch8autograd8profiler25record_function_enter_newE*",
		.category = "user_annotation",
		.scope = SCOPE(USER_SCOPE),
		.shape = CATALOG_RANGE_BEGIN,
		.naming = CATALOG_NAME_TEXT,
		.text = {.reg = KPROF_REG_ARG2, .nr_off = 1, .off = {0}},
		.lost = "record_function annotations",
	},
	{
		/*
		 * For builds that inline record_function_enter_new(). Python reaches it by
		 * torch.ops.profiler._record_function_enter(_new)(name, …), which calls
		 * _get_operation_for_overload_or_packet(operators, symbol, args, …), whose first
		 * register is the hidden result. The first operator's definition starts with its
		 * name, which the characters from the 27th on distinguish from other operators'
		 * names; the first element of args is a str.
		 */
		.source = "annotations",
		.library = "libtorch_python.so*",
		.symbols = "_ZN5torch3jit37_get_operation_for_overload_or_packetE*",
		.category = "user_annotation",
		.scope = SCOPE(USER_SCOPE),
		.shape = CATALOG_RANGE_BEGIN,
		.naming = CATALOG_NAME_TEXT,
		.value = {.reg = KPROF_REG_ARG2, .nr_off = 5, .off = {0, 0, 0, 0, 27}},
		.value_is = "enter",
		.text = {.reg = KPROF_REG_ARG4, .nr_off = 2, .off = {0, 24}},
		.layout = CATALOG_LAYOUT_PYUNICODE,
		.layout_at = -1,
		.only_without = CALL_BOXED "*",
		.only_without_in = "libtorch_cpu.so*",
		.optional = true,
	},
	{
		/*
		 * The end of an annotation where boxed calls cannot be seen: the destructor of the
		 * heap object that holds the annotation. Those of C++ scopes are on the stack.
		 */
		.source = "annotations",
		.library = "libtorch_cpu.so*",
		.symbols = "_ZN2at14RecordFunctionD1Ev",
		.category = "user_annotation",
		.scope = SCOPE(USER_SCOPE),
		.shape = CATALOG_RANGE_END,
		.naming = CATALOG_NAME_FIXED,
		.value = {.reg = KPROF_REG_ARG1},
		.heap_object = true,
		.only_without = CALL_BOXED "*",
		.optional = true,
	},
	{
		/*
		 * Ranges of torch.compile itself: (char const *name, …). Their scope is not the
		 * user's, so that torch.profiler shows them as operators.
		 */
		.source = "annotations",
		.library = "libtorch_python.so*",
		.symbols = "_pytorch_record_function_enter",
		.category = "cpu_op",
		.scope = SCOPE(FUNCTION),
		.shape = CATALOG_RANGE_BEGIN,
		.naming = CATALOG_NAME_TEXT,
		.text = {.reg = KPROF_REG_ARG1},
		.optional = true,
		.lost = "TorchDynamo Cache Lookup, Torch-Compiled Region",
	},
	{
		.source = "annotations",
		.library = "libtorch_python.so*",
		.symbols = "_pytorch_record_function_exit",
		.category = "cpu_op",
		.scope = SCOPE(FUNCTION),
		.shape = CATALOG_RANGE_END,
		.naming = CATALOG_NAME_FIXED,
		.optional = true,
	},
	{
		/*
		 * _RecordFunctionFast.__enter__(self): name object at +16, an ASCII str. To
		 * torch.profiler an operator, too.
		 */
		.source = "annotations",
		.library = "libtorch_python.so*",
		.symbols = "_ZN5torch8profiler12_GLOBAL__N_124RecordFunctionFast_enterE*",
		.category = "cpu_op",
		.scope = SCOPE(FUNCTION),
		.shape = CATALOG_RANGE_BEGIN,
		.naming = CATALOG_NAME_TEXT,
		.text = {.reg = KPROF_REG_ARG1, .nr_off = 1, .off = {16}},
		.layout = CATALOG_LAYOUT_PYUNICODE,
		.layout_at = -1,
		.optional = true,
		.lost = "_RecordFunctionFast annotations",
	},
	{
		.source = "annotations",
		.library = "libtorch_python.so*",
		.symbols = "_ZN5torch8profiler12_GLOBAL__N_123RecordFunctionFast_exitE*",
		.category = "cpu_op",
		.scope = SCOPE(FUNCTION),
		.shape = CATALOG_RANGE_END,
		.naming = CATALOG_NAME_FIXED,
		.optional = true,
	},
	{
		/* TorchScript: GraphFunction::run(Stack&); qualified name at this+32 */
		.source = "torchscript",
		.library = "libtorch_cpu.so*",
		.symbols = "_ZN5torch3jit13GraphFunction3runE*",
		.category = "cpu_op",
		.scope = SCOPE(TORCHSCRIPT_FUNCTION),
		.shape = CATALOG_SPAN,
		.naming = CATALOG_NAME_TEXT,
		.text = {.reg = KPROF_REG_ARG1, .nr_off = 1, .off = {32}},
		.last_component = true,
		.inputs = CATALOG_INPUTS_STACK,
		.optional = true,
		.lost = "TorchScript methods",
	},
	{
		/*
		 * Custom autograd functions: THPFunction_apply(cls, …), named by the tp_name of the
		 * class
		 */
		.source = "autograd",
		.library = "libtorch_python.so*",
		.symbols =
			"_Z17THPFunction_applyP7_objectS0_ _ZN12_GLOBAL__N_117THPFunction_applyE*",
		.category = "cpu_op",
		.scope = SCOPE(FUNCTION),
		.shape = CATALOG_SPAN,
		.naming = CATALOG_NAME_TEXT,
		.text = {.reg = KPROF_REG_ARG1, .nr_off = 1, .off = {24}},
		.sequence = KPROF_SEQUENCE_NEXT,
		.lost = "custom autograd functions (their forward)",
	},
	{
		.source = "distributed",
		.library = "libtorch_cpu.so*",
		.symbols = "_ZN4c10d7Reducer25mark_variable_ready_denseEm",
		.category = "cpu_op",
		.scope = SCOPE(FUNCTION),
		.shape = CATALOG_SPAN,
		.naming = CATALOG_NAME_FIXED,
		.name = "torch::distributed::reducer::mul_out",
		.optional = true,
	},
	{
		.source = "distributed",
		.library = "libtorch_cpu.so*",
		.symbols = "_ZN4c10d7Reducer19copy_bucket_to_gradE*",
		.category = "cpu_op",
		.scope = SCOPE(FUNCTION),
		.shape = CATALOG_SPAN,
		.naming = CATALOG_NAME_FIXED,
		.name = "torch.distributed.ddp.reducer::copy_bucket_to_grad",
		.optional = true,
	},
	C10D_OP("9allreduce", "allreduce_"),
	C10D_OP("9broadcast", "broadcast_"),
	C10D_OP("9allgather", "allgather_"),
	C10D_OP("14reduce_scatter", "reduce_scatter_"),
	C10D_OP("6reduce", "reduce_"),
	C10D_OP("6gather", "gather_"),
	C10D_OP("7scatter", "scatter_"),
	C10D_OP("8alltoall", "alltoall_"),
	C10D_OP("4send", "send"),
	C10D_OP("4recv", "recv_"),
	GLOO_OF(ALLREDUCE, "9allreduce" TENSORS, "all_reduce", "allreduce", SAME,
		VECTOR(ARG3, REDUCTION(ARG4))),
	GLOO_OF(BROADCAST, "9broadcast" TENSORS, "broadcast", "broadcast", SAME,
		VECTOR(ARG3, ROOT(ARG4))),
	GLOO_OP("9allgather" TENSORS, "all_gather", "all_gather", IN, VECTOR(ARG4)),
	GLOO_OF(REDUCE, "6reduce" TENSORS, "reduce", "reduce", SAME,
		VECTOR(ARG3, ROOT(ARG4), REDUCTION(ARG4))),
	GLOO_OF(GATHER, "6gather" TENSORS, "gather", "gather", IN, VECTOR(ARG4, ROOT(ARG5))),
	GLOO_OF(SCATTER, "7scatter" TENSORS, "scatter", "scatter", OUT, VECTOR(ARG3, ROOT(ARG5))),
	GLOO_OP("13alltoall_base" TWO_TENSORS, "all_to_all", "all_to_all", ONLY_IN, TENSOR(ARG4)),
	GLOO_OP("17all_to_all_single" TWO_TENSORS, "all_to_all", "all_to_all", ONLY_IN,
		TENSOR(ARG4)),
	GLOO_OP("7barrierERKNS_14BarrierOptionsE", "barrier", "barrier", NONE, NO_TENSOR),
	GLOO_PEER("4send", "send", RECEIVES, ARG4),
	GLOO_PEER("4recv", "recv", SENDS, ARG4),
	GLOO_PEER("13recvAnysource", "recvAnySource", SENDS_ANY, KPROF_REG_NONE),
	{
		/* enqueue(intrusive_ptr<AsyncWork>): this, the address of the pointer */
		.source = "distributed",
		.library = "libtorch_cpu.so*",
		.symbols = "_ZN4c10d16ProcessGroupGloo7enqueueEN3c1013intrusive_ptrINS0_*",
		.category = "collective_comm",
		.shape = CATALOG_INSTANT,
		.naming = CATALOG_NAME_FIXED,
		.optional = true,
		.args = {{.from = {KPROF_REG_ARG2, 1, 0, 0}}},
		.collective = &(const struct catalog_collective){.role = CATALOG_COLLECTIVE_QUEUED},
	},
	{
		/*
		 * AsyncWork::execute(intrusive_ptr<AsyncWork>), a static method, on a thread of
		 * gloo's: the communication itself
		 */
		.source = "distributed",
		.library = "libtorch_cpu.so*",
		.symbols = "_ZN4c10d16ProcessGroupGloo9AsyncWork7executeE*",
		.category = "collective_comm",
		.shape = CATALOG_SPAN,
		.naming = CATALOG_NAME_VTABLE,
		.strip = "c10d::",
		.args = {{.from = {KPROF_REG_ARG1, 1, 0, 0}}, {.from = {KPROF_REG_ARG1, 2, 0, 0}}},
		.collective = &(const struct catalog_collective){.role = CATALOG_COLLECTIVE_WORK},
		.optional = true,
	},
	NCCL_OF(ALLREDUCE, "9allreduce" TENSORS, "all_reduce", "allreduce", SAME,
		VECTOR(ARG3, REDUCTION(ARG4))),
	NCCL_OF(BROADCAST, "9broadcast" TENSORS, "broadcast", "broadcast", SAME,
		VECTOR(ARG3, ROOT(ARG4))),
	NCCL_OP("9allgather" TENSORS, "all_gather", "all_gather", IN, VECTOR(ARG4)),
	/* Of two tensors, the first one is the output. Until 2.9 such methods had other names. */
	NCCL_OP("15_allgather_base" TWO_TENSORS, "_all_gather_base", "_allgather_base", IN,
		TENSOR(ARG4)),
	NCCL_OP("17all_gather_single" TWO_TENSORS, "_all_gather_base", "_allgather_base", IN,
		TENSOR(ARG4)),
	NCCL_OF(REDUCE, "6reduce" TENSORS, "reduce", "reduce", SAME,
		VECTOR(ARG3, ROOT(ARG4), REDUCTION(ARG4))),
	NCCL_OF(ALLREDUCE, "14reduce_scatter" TENSORS, "reduce_scatter", "reduce_scatter", OUT,
		VECTOR(ARG3, REDUCTION(ARG5))),
	NCCL_OF(ALLREDUCE, "20_reduce_scatter_base" TWO_TENSORS, "_reduce_scatter_base",
		"_reduce_scatter_base", OUT, TENSOR(ARG3, REDUCTION(ARG5))),
	NCCL_OF(ALLREDUCE, "21reduce_scatter_single" TWO_TENSORS, "_reduce_scatter_base",
		"_reduce_scatter_base", OUT, TENSOR(ARG3, REDUCTION(ARG5))),
	NCCL_OF(GATHER, "6gather" TENSORS, "gather", "gather", IN, VECTOR(ARG4, ROOT(ARG5))),
	NCCL_OF(SCATTER, "7scatter" TENSORS, "scatter", "scatter", OUT, VECTOR(ARG3, ROOT(ARG5))),
	NCCL_OP("8alltoall" TENSORS, "all_to_all", "all_to_all", NONE, NO_TENSOR),
	NCCL_OP("13alltoall_base" TWO_TENSORS, "all_to_all", "all_to_all", ONLY_IN, TENSOR(ARG4)),
	NCCL_OP("17all_to_all_single" TWO_TENSORS, "all_to_all", "all_to_all", ONLY_IN,
		TENSOR(ARG4)),
	NCCL_OP("7barrierERKNS_14BarrierOptionsE", "all_reduce_barrier", "barrier", NONE,
		NO_TENSOR),
	NCCL_PEER("4send", "send", RECEIVES, ARG4),
	NCCL_PEER("4recv", "recv", SENDS, ARG4),
	MEMORY(CPU_MEMORY("3NewEPvm"), "[memory]", CATALOG_MEMORY_ALLOCATED,
	       MEMORY_ADDR(KPROF_REG_ARG2), MEMORY_BYTES("Bytes", KPROF_REG_ARG3)),
	MEMORY(CPU_MEMORY("6DeleteEPv"), "[memory]", CATALOG_MEMORY_FREED,
	       MEMORY_ADDR(KPROF_REG_ARG2)),
	MEMORY(CPU_MEMORY("11OutOfMemoryEm"), "[OutOfMemory]", CATALOG_MEMORY_FAILED,
	       MEMORY_BYTES("Bytes", KPROF_REG_ARG2)),
	/* By these, allocators tell whoever profiles, also those of CUDA's and of XPU's memory. */
	MEMORY("_ZN3c1027reportMemoryUsageToProfilerEPvl*", "[memory]", CATALOG_MEMORY_REPORTED,
	       MEMORY_ADDR(KPROF_REG_ARG1), MEMORY_BYTES("Bytes", KPROF_REG_ARG2),
	       MEMORY_BYTES("Total Allocated", KPROF_REG_ARG3),
	       MEMORY_BYTES("Total Reserved", KPROF_REG_ARG4), MEMORY_DEVICE(KPROF_REG_ARG5)),
	MEMORY("_ZN3c1027reportOutOfMemoryToProfilerEl*", "[OutOfMemory]",
	       CATALOG_MEMORY_REPORTED_FAILED, MEMORY_BYTES("Bytes", KPROF_REG_ARG1),
	       MEMORY_BYTES("Total Allocated", KPROF_REG_ARG2),
	       MEMORY_BYTES("Total Reserved", KPROF_REG_ARG3), MEMORY_DEVICE(KPROF_REG_ARG4)),
};

#define RUNNING "_ZN3c1010Dispatcher38sequenceNumberForRunningRecordFunctionENS_11DispatchKeyE"

static const struct catalog_sequence sequence = {
	.numbers_library = "libtorch_cpu.so*",
	.state_library = "libc10.so*",
	.next = "_ZN2at15sequence_number4peekEv",
	.thread = "_ZN2at14RecordFunction15currentThreadIdEv",
	.largest_node = "_ZN5torch8autograd14AccumulateGradC1EN2at6TensorE",
	.without_keys = "_ZN2at6native12is_inferenceERKNS_6TensorE",
	.with_key = RUNNING,
	.with_keys = RUNNING "NS_14DispatchKeySetE",
	.grad = "_ZN3c108GradMode10is_enabledEv",
	.state = "_ZN3c1013AutogradState13get_tls_stateEv",
	.included = "_ZN3c104impl31tls_is_dispatch_keyset_includedENS_14DispatchKeySetE",
	.excluded = "_ZN3c104impl31tls_is_dispatch_keyset_excludedENS_14DispatchKeySetE",
};

#define GLOO "_ZN4c10d16ProcessGroupGloo"

static const struct catalog_collectives collectives = {
	.library = "libtorch_cpu.so*",
	.group_name = "_ZNK4c10d12ProcessGroup12getGroupName*Ev",
	.constructor = "_ZN4c10d7BackendC2Eii",
	.options =
		{
			[CATALOG_OPTIONS_BROADCAST] = {GLOO "9broadcast" TENSORS "OptionsE", ARG4},
			[CATALOG_OPTIONS_GATHER] = {GLOO "6gather" TENSORS "OptionsE", ARG5},
			[CATALOG_OPTIONS_SCATTER] = {GLOO "7scatter" TENSORS "OptionsE", ARG5},
			[CATALOG_OPTIONS_REDUCE] = {GLOO "6reduce" TENSORS "OptionsE", ARG4},
			[CATALOG_OPTIONS_ALLREDUCE] = {GLOO "9allreduce" TENSORS "OptionsE", ARG4},
		},
};

const struct catalog_framework catalog_pytorch = {
	.name = "pytorch",
	.libraries = torch_libraries,
	.version_file = "../version.py",
	.version_key = "__version__",
	.package = "torch",
	.tensor_library = "libc10.so*",
	.tensor_symbol = "_ZNK3c1010TensorImpl14strides_customEv", /* strides_custom() const */
	.observer_library = "libtorch_cpu.so*",
	.observer_symbol = "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE",
	.observer_constructor = "_ZN2at14RecordFunctionC1EONS_13StepCallbacksE",
	/* torch::profiler::impl::inputSizes() */
	.observer_inputs = "_ZN5torch8profiler4impl10inputSizesERKN2at14RecordFunctionEb",
	.observer_begins =
		"_ZN5torch8profiler4impl19ThreadLocalSubqueue8begin_opERKN2at14RecordFunctionE",
	.observer_is_list = "_ZNK3c106IValue12isTensorListEv",
	.sequence = &sequence,
	.collectives = &collectives,
	.common = COMMON_OPS,
	.hidden = hidden_ops,
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
};
