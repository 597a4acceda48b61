//! Panics on the thread of a life. A pass of the operator that panics is one that has failed, and ends no
//! life by itself.

use std::cell::RefCell;
use std::panic::{set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static FIRST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on the first panic of each thread is noted, beside what is done with it anyway.
pub fn note() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            FIRST.with_borrow_mut(|first| {
                first.get_or_insert_with(|| panic.to_string());
            });
            before(panic);
        }));
    });
}

/// The first one of this thread, once.
pub fn first() -> Option<String> {
    FIRST.take()
}
