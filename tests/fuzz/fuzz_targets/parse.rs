//! Any text: parsing ends, and what it reads prints as a text that reads the same.
#![no_main]

use admit_cel::Source;
use admit_cel::syntax::{self, Options, macros};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let sets = [macros::STANDARD, macros::OPTIONAL, macros::TWO_VARIABLE, macros::LISTS];
    let options = Options {
        optional_syntax: true,
        escaped_identifiers: true,
        macros: sets.into_iter().flatten().collect(),
    };
    let Ok(ast) = syntax::parse(&Source::new(text), &options) else { return };
    let printed = ast.to_string();
    // Parentheses that printing needs may nest deeper than the text did.
    if let Ok(again) = syntax::parse(&Source::new(&printed), &options) {
        assert_eq!(again.to_string(), printed);
    }
});
