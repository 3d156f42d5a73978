//! Catches panics of libraries that read files: bad data must not end collo.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Run something that may panic on its input. The panic is not printed; its message is the error.
pub fn caught<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                usual(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(read));
    QUIET.set(before);
    result.map_err(|payload| format!("the library that reads it failed: {}", message(&*payload)))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| s.to_string());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it gave no reason".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_message_and_the_next_one_is_printed_again() {
        let empty: Vec<u8> = Vec::new();
        let why = caught(|| empty[std::hint::black_box(3)]).unwrap_err();
        assert_eq!(why, "the library that reads it failed: index out of bounds: the len is 0 but the index is 3");
        assert_eq!(caught(|| 7), Ok(7));
        assert!(!QUIET.get());
    }
}
