// SPDX-License-Identifier: BSD-2-Clause

// A Go program that knows its stacks: what runtime.Callers() says where the time is spent, as tests/stacks/shadow.h.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

var phases []string
var sum uint64

func now(clock uintptr) uint64 {
	var ts syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0)
	return uint64(ts.Sec)*1000000000 + uint64(ts.Nsec)
}

//go:noinline
func count() {
	for i := uint64(0); i < 20000; i++ {
		sum = sum*i + 3
	}
}

// Everything that happens between begin and end is called from here. Inlined functions have entries of their own in what
// Callers() returns: all on the way here are kept from being inlined.
//
//go:noinline
func phase_run(name string, cpuNs uint64) {
	var pcs [256]uintptr
	n := runtime.Callers(1, pcs[:])
	cpu, begin, took := now(3), now(1), uint64(0)
	for took < cpuNs {
		count()
		took = now(3) - cpu
	}
	end := now(1)
	program, _ := os.Readlink("/proc/self/exe")
	frames := make([]string, n)
	for i := range frames {
		frames[i] = fmt.Sprintf(`{"module": "%s", "address": %d, "function": "", "exact": 0}`, program, pcs[i]-1)
	}
	phases = append(phases, fmt.Sprintf(`{"name": "%s", "tid": %d, "begin_ns": %d, "end_ns": %d, "cpu_ns": %d, "shadow": [], "unwound": [%s]}`,
		name, syscall.Gettid(), begin, end, took, strings.Join(frames, ", ")))
}

//go:noinline
func recurse(n int, cpuNs uint64) int {
	var block [64]byte
	block[n&63] = 1
	if n == 0 {
		phase_run("recursion", cpuNs)
		return 0
	}
	return recurse(n-1, cpuNs) + int(block[n&63])
}

type walker interface{ walk(cpuNs uint64) }
type shape struct{ a, b int }

//go:noinline
func (s shape) walk(cpuNs uint64) {
	defer func() {
		recover()
		phase_run("deferred", cpuNs)
	}()
	panic("on its way")
}

func main() {
	cpuNs := uint64(50000000)
	for i, a := range os.Args {
		if a == "--cpu-ms" {
			ms, _ := strconv.Atoi(os.Args[i+1])
			cpuNs = uint64(ms) * 1000000
		}
	}
	fmt.Println("READY", os.Getpid())
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		os.Exit(9)
	}
	runtime.LockOSThread()
	recurse(40, cpuNs)
	var w walker = shape{1, 2}
	w.walk(cpuNs)
	done := make(chan bool)
	go func() {
		runtime.LockOSThread()
		phase_run("goroutine", cpuNs)
		done <- true
	}()
	<-done
	program, _ := os.Readlink("/proc/self/exe")
	fmt.Printf("{\"pid\": %d, \"program\": \"%s\", \"phases\": [%s]}\n", os.Getpid(), program, strings.Join(phases, ", "))
	in.ReadString('\n')
}
