// SPDX-License-Identifier: BSD-2-Clause
//! A Rust program that knows its stacks: what libgcc's backtrace() says where the time is spent, as tests/stacks/shadow.h.
use std::fmt::Write as _;
use std::io::{BufRead, Write as _};

extern "C" {
    fn backtrace(buffer: *mut usize, size: i32) -> i32;
    fn clock_gettime(clock: i32, to: *mut [i64; 2]) -> i32;
    fn gettid() -> i32;
}

fn now(clock: i32) -> u64 {
    let mut ts = [0i64; 2];
    unsafe { clock_gettime(clock, &mut ts) };
    ts[0] as u64 * 1_000_000_000 + ts[1] as u64
}

/// Not to be reckoned at compile time. std::hint::black_box() is younger than Debian 12's compiler.
#[inline(always)]
fn opaque(value: u64) -> u64 {
    unsafe { std::ptr::read_volatile(&value) }
}

/// Where the program was loaded: the first mapping of it.
fn bias() -> usize {
    let exe = std::fs::read_link("/proc/self/exe").unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|l| l.ends_with(exe.to_str().unwrap())).unwrap();
    usize::from_str_radix(line.split('-').next().unwrap(), 16).unwrap()
}

#[inline(never)]
fn phase_run(name: &str, cpu_ns: u64, out: &mut String) -> u64 {
    let mut frames = [0usize; 256];
    let n = unsafe { backtrace(frames.as_mut_ptr(), 256) } as usize;
    let (cpu, begin, mut sum) = (now(3), now(1), 1u64);
    let mut took = 0;
    while took < cpu_ns {
        for i in 0..2000u64 {
            sum = opaque(sum.wrapping_mul(i + 3));
        }
        took = now(3) - cpu;
    }
    let end = now(1);
    let base = bias();
    let exe = std::fs::read_link("/proc/self/exe").unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let separator = if out.is_empty() { "" } else { ", " };
    write!(
        out,
        "{separator}{{\"name\": \"{name}\", \"tid\": {}, \"begin_ns\": {begin}, \"end_ns\": {end}, \"cpu_ns\": {took}, \"shadow\": [], \"unwound\": [",
        unsafe { gettid() }
    )
    .unwrap();
    for (i, address) in frames[..n].iter().enumerate() {
        // Of the program itself; of libraries what their first mapping says.
        let line = maps
            .lines()
            .find(|l| {
                let (from, rest) = l.split_once('-').unwrap();
                let to = rest.split(' ').next().unwrap();
                let parse = |t| usize::from_str_radix(t, 16).unwrap_or(usize::MAX);
                parse(from) <= *address && *address < parse(to)
            })
            .unwrap();
        let path = line.split_whitespace().nth(5).unwrap_or("?");
        let module_base = if path == exe.to_str().unwrap() {
            base
        } else {
            let first = maps.lines().find(|l| l.ends_with(path)).unwrap();
            usize::from_str_radix(first.split('-').next().unwrap(), 16).unwrap()
        };
        write!(
            out,
            "{}{{\"module\": \"{path}\", \"address\": {}, \"function\": \"\", \"exact\": 0}}",
            if i > 0 { ", " } else { "" },
            address - 1 - module_base
        )
        .unwrap();
    }
    out.push_str("]}");
    sum
}

trait Walk {
    fn walk(&self, n: u32, cpu_ns: u64, out: &mut String) -> u64;
}
struct Plain(u64);
struct Boxed(Box<dyn Walk>);

impl Walk for Plain {
    #[inline(never)]
    fn walk(&self, n: u32, cpu_ns: u64, out: &mut String) -> u64 {
        self.0 + if n > 0 { self.walk(n - 1, cpu_ns, out) } else { phase_run("dyn", cpu_ns, out) }
    }
}
impl Walk for Boxed {
    #[inline(never)]
    fn walk(&self, n: u32, cpu_ns: u64, out: &mut String) -> u64 {
        self.0.walk(n, cpu_ns, out) + 1
    }
}

fn main() {
    let cpu_ns: u64 = std::env::args().skip_while(|a| a != "--cpu-ms").nth(1).map_or(50, |v| v.parse().unwrap()) * 1_000_000;
    println!("READY {}", std::process::id());
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line).unwrap() == 0 {
        std::process::exit(9);
    }
    let mut out = String::new();
    let mut sum = Boxed(Box::new(Plain(3))).walk(20, cpu_ns, &mut out);
    let names = ["b", "a", "c"];
    let mut sorted = names.to_vec();
    sorted.sort_by_key(|name| {
        sum += (0..2).map(|i| if i == 0 && *name == "a" && !out.contains("closure") { phase_run("closure", cpu_ns, &mut out) } else { 1 }).sum::<u64>();
        name.len()
    });
    let caught = std::panic::catch_unwind(|| {
        struct Guard(u64);
        impl Drop for Guard {
            fn drop(&mut self) {
                let mut out = String::new();
                phase_run("panic", self.0, &mut out);
                PANIC.lock().unwrap().push_str(&out);
            }
        }
        let _guard = Guard(cpu_ns);
        std::panic::resume_unwind(Box::new(1));
    });
    assert!(caught.is_err());
    let panicked = PANIC.lock().unwrap().clone();
    let mut out = std::thread::spawn(move || {
        opaque(sum + Plain(1).walk(3, cpu_ns, &mut out));
        out
    })
    .join()
    .unwrap();
    out.push_str(", ");
    out.push_str(&panicked);
    println!("{{\"pid\": {}, \"program\": \"{}\", \"phases\": [{out}]}}", std::process::id(), std::fs::read_link("/proc/self/exe").unwrap().display());
    std::io::stdout().flush().unwrap();
    std::io::stdin().lock().read_line(&mut line).unwrap();
}

static PANIC: std::sync::Mutex<String> = std::sync::Mutex::new(String::new());
