#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints what tests/bench/gen_stacks reads: samples of a training loop that never was. The same text each time.

    gen_training.py [SAMPLES] | gen_stacks OUT.kprof
"""

import random
import sys

TORCH, PYTHON, LIBC, KERNEL = ("/opt/venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so",
                               "/usr/bin/python3.11", "/usr/lib/x86_64-linux-gnu/libc.so.6", "[kernel.kallsyms]")
BUILD = {TORCH: "9f3a77", PYTHON: "aa01", LIBC: "bb02", KERNEL: ""}
SITE = "/opt/venv/lib/python3.11/site-packages/torch"
WHOLE = 1 << 8


def native(module, *lines, op=""):
    """lines: (function, file, line), innermost inlined function first."""
    address = sum(ord(c) for c in lines[0][0]) * 4096 + len(lines[0][0])
    kind = "K" if module == KERNEL else "N"
    return "|".join([kind, module, BUILD[module], hex(address), op] + [str(x) for line in lines for x in line])


def python(function, file, line):
    return "|".join(["P", "", "", "0", "", function, file, str(line)])


def cpp(function, op="", *inlined, file="", line=0):
    return native(TORCH, *inlined, (function, file, line), op=op)


def kernel(*functions):
    return [native(KERNEL, (f, "", 0)) for f in functions]


def op(name, *inside):
    overload = name.split("::")[1]
    return [cpp(f"at::_ops::{overload}::call(at::Tensor const&, at::Tensor const&)", name,
                ("c10::Dispatcher::singleton()", "Dispatcher.h", 70)),
            cpp(f"at::(anonymous namespace)::wrapper_CPU_{overload}(at::Tensor const&, at::Tensor const&)"), *inside]


MAIN = [native(LIBC, ("_start", "", 0)), native(LIBC, ("__libc_start_main", "", 0)),
        native(PYTHON, ("Py_BytesMain", "", 0)),
        python("<module>", "/home/ada/work/train.py", 88), python("main", "/home/ada/work/train.py", 71)]
STEP = MAIN + [python("Trainer.step", "/home/ada/work/trainer.py", 42)]
CALL = [python("Module._wrapped_call_impl", f"{SITE}/nn/modules/module.py", 1751),
        python("Module._call_impl", f"{SITE}/nn/modules/module.py", 1762)]
FORWARD = STEP + CALL + [python("TransformerModel.forward", "/home/ada/work/model.py", 33)]
LAYER = FORWARD + CALL + [python("EncoderLayer.forward", "/home/ada/work/model.py", 57)]
LINEAR = LAYER + CALL + [python("Linear.forward", f"{SITE}/nn/modules/linear.py", 125)]
GEMM = [cpp("at::native::addmm_impl_cpu_(at::Tensor&, at::Tensor const&)"), cpp("at::native::cpublas::gemm(at::native::TransposeType)"),
        cpp("mkl_blas_avx512_sgemm_kernel_0", "", ("_mm512_fmadd_ps", "avx512fintrin.h", 3310))]
LOOP = [cpp("at::native::AVX2::vectorized_loop<at::native::(anonymous namespace)::add_clamp_kernel<float, "
            "std::array<long, 3ul>>(at::TensorIterator&)::{lambda(float, float)#1}>(char**, long)")]
BACKWARD = [native(LIBC, ("clone3", "", 0)), native(LIBC, ("start_thread", "pthread_create.c", 442)),
            cpp("std::execute_native_thread_routine"), cpp("torch::autograd::python::PythonEngine::thread_init(int)"),
            cpp("torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)"),
            cpp("torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&)"),
            cpp("torch::autograd::generated::AddmmBackward0::apply(std::vector<at::Tensor>&&)")]
WORKER = [native(LIBC, ("clone3", "", 0)), native(LIBC, ("start_thread", "pthread_create.c", 442)),
          cpp("gomp_thread_start"), cpp("at::internal::invoke_parallel<at::native::add_kernel>(long, long)")]
LOAD = MAIN + [python("DataLoader.__next__", f"{SITE}/utils/data/dataloader.py", 733),
               python("_MapDatasetFetcher.fetch", f"{SITE}/utils/data/_utils/fetch.py", 52),
               python("Corpus.__getitem__", "/home/ada/work/data.py", 19)]
READ = [native(LIBC, ("read", "", 0)), *kernel("entry_SYSCALL_64_after_hwframe", "do_syscall_64", "ksys_read", "vfs_read",
                                               "ext4_file_read_iter", "filemap_read", "copy_page_to_iter")]
FAULT = [native(LIBC, ("__memset_avx512_unaligned_erms", "memset-vec-unaligned-erms.S", 250)),
         *kernel("asm_exc_page_fault", "exc_page_fault", "handle_mm_fault", "do_anonymous_page", "clear_page_erms")]
STACKS = [  # thread, share, stack
    (0, 300, LINEAR + op("aten::addmm", *GEMM)), (0, 60, LINEAR + op("aten::addmm")),
    (0, 45, LAYER + op("aten::add", *LOOP)), (0, 40, LAYER + op("aten::gelu", cpp("at::native::gelu_kernel(at::TensorIterator&)"))),
    (0, 70, LAYER + [python("scaled_dot_product", "/home/ada/work/model.py", 21)] + op("aten::bmm", *GEMM)),
    (0, 30, LAYER + [python("scaled_dot_product", "/home/ada/work/model.py", 22)] + op("aten::softmax", *LOOP)),
    (0, 20, LAYER + op("aten::empty", cpp("c10::alloc_cpu(unsigned long)"), *FAULT)), (0, 25, CALL[:1] and FORWARD + CALL[:1]),
    (0, 35, LAYER), (0, 50, LOAD), (0, 40, LOAD + READ), (0, 18, STEP + [python("Adam.step", f"{SITE}/optim/adam.py", 221)] +
                                                         op("aten::_foreach_add_", *LOOP)),
    (1, 240, BACKWARD + op("aten::mm", *GEMM)), (1, 30, BACKWARD + op("aten::sum", *LOOP)),
    (1, 20, BACKWARD[:-1] + [cpp("torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)")]),
    (2, 60, WORKER + LOOP), (3, 58, WORKER + LOOP), (3, 4, WORKER[:-1] + kernel("asm_sysvec_apic_timer_interrupt", "sysvec_apic_timer_interrupt")),
]


def main():
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    chance = random.Random(1)
    deep = [python(f"walk_{'odd' if i % 2 else 'even'}", "/home/ada/work/tree.py", 7 + i % 2) for i in range(90)]
    stacks = STACKS + [(0, 1, MAIN + [python("Metrics.log", "/home/ada/work/metrics.py", i)] + deep[:i]) for i in range(2, 90, 3)]
    stacks += [(1, 1, BACKWARD + op(f"aten::tiny_{i}", cpp(f"at::native::tiny_{i}()"))) for i in range(40)]
    print("meta\tstacks\t{\"frequency_hz\": 99}\nmeta\tversion\t\"0.2.0\"\nsource\tsamples\t%d\t%d" % (total + 3, 3))
    print("process\t4242\tpython3\tpython3 train.py --epochs 3 --batch-size 64 --data /srv/corpus")
    for tid, name in ((4242, "python3"), (4250, "pt_autograd_0"), (4251, "OMP worker"), (4252, "OMP worker")):
        print(f"thread\t4242\t{tid}\t{name}")
    everything = sum(share for _, share, _ in stacks)
    for thread, share, stack in stacks:
        count = max(1, round(total * share / everything))
        flags = WHOLE | (1 if "|copy_page" in stack[-1] else 0)
        print("\t".join(["sample", str(thread), str(count), str(10101010 + chance.randrange(1000)), str(flags)] + stack))
    print("\t".join(["sample", "0", str(max(1, total // 200)), "10101010", str(2 << 8)] + GEMM[-1:]))
    print("\t".join(["span", "0", "aten::addmm"] + LINEAR))


main()
