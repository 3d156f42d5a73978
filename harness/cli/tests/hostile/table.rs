//! All cases, some at a time; a line for each, and what was tried and held by kind.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;

use crate::hostile::case::{Case, Check};

struct Tried {
    kind: &'static str,
    name: String,
    result: Check,
    took_s: f64,
}

fn tried(case: &Case) -> Tried {
    let began = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| case.tried())).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        Err(text.or_else(|| cause.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_else(|| "the case panicked".into()))
    });
    Tried { kind: case.kind, name: case.name.clone(), result, took_s: began.elapsed().as_secs_f64() }
}

/// Try them all, and fail with everything that did not hold.
pub fn all(cases: Vec<Case>) {
    assert!(!cases.is_empty(), "no case has that name: `just torture hostile` lists them");
    let kinds: Vec<&'static str> = cases.iter().fold(Vec::new(), |mut seen, case| {
        if !seen.contains(&case.kind) {
            seen.push(case.kind);
        }
        seen
    });
    let queue: Mutex<VecDeque<Case>> = Mutex::new(cases.into());
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(case) = queue.lock().expect("nobody panicked").pop_front() else { return };
            let tried = tried(&case);
            let sign = if tried.result.is_ok() { '✓' } else { '✗' };
            let words = tried.result.as_ref().err().and_then(|e| e.lines().next()).unwrap_or_default();
            eprintln!("{sign} {:5.1} s  {}  {words}", tried.took_s, tried.name);
            done.lock().expect("nobody panicked").push(tried);
        }
    };
    // Most of them sleep most of the time.
    let workers = std::thread::available_parallelism().map_or(2, usize::from) + 1;
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let done = done.into_inner().expect("nobody panicked");
    print!("{}", table(&kinds, &done));
    let failed: Vec<&Tried> = done.iter().filter(|t| t.result.is_err()).collect();
    for t in &failed {
        let what = t.result.as_ref().err().map(String::as_str).unwrap_or_default();
        println!("\n✗ {} ({}): {what}\n  again: just torture hostile {}", t.name, t.kind, t.name);
    }
    assert!(failed.is_empty(), "{} of {} cases did not hold", failed.len(), done.len());
}

fn table(kinds: &[&str], done: &[Tried]) -> String {
    let wide = kinds.iter().map(|k| k.len()).max().unwrap_or(0).max(4);
    let mut text = format!("\n{:wide$}  tried  held  not\n", "kind");
    let mut line = |kind: &str, of: &dyn Fn(&&Tried) -> bool| {
        let tried = done.iter().filter(of).count();
        let held = done.iter().filter(of).filter(|t| t.result.is_ok()).count();
        text.push_str(&format!("{kind:wide$}  {tried:5}  {held:4}  {:3}\n", tried - held));
    };
    for kind in kinds {
        line(kind, &|t| t.kind == *kind);
    }
    line("all", &|_| true);
    text
}
