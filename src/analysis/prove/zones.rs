//! Time zones that are constants: how far one is from UTC, where that is the same at all times.

use std::sync::LazyLock;

use admit_cel::{Bindings, Env, Evaluation, Mode, Program, Type, Value, Version};

/// A zone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Zone {
    /// So many minutes from UTC, always.
    Fixed(i64),
    /// There is no such zone: to ask for it is an error.
    None,
    /// It is not followed, and why.
    Unknown(&'static str),
}

/// Noon of a day in the middle of a year, as far as any zone is from its ends.
const DAY: i64 = 165;
const NOON: i64 = 720;

static PROGRAM: LazyLock<Option<Program>> = LazyLock::new(|| {
    let env = Env::kubernetes(Version(1, 36), Mode::Stored).with_variable("z", Type::String);
    let noon = "timestamp('2001-06-15T12:00:00Z')";
    let parts = ["getFullYear", "getDayOfYear", "getHours", "getMinutes"];
    let parts: Vec<String> = parts.iter().map(|part| format!("{noon}.{part}(z)")).collect();
    env.program(&env.compile(&format!("[{}]", parts.join(", "))).ok()?).ok()
});

/// A zone by its text. One with a colon is an offset; of others the offset may change with the time.
pub(super) fn zone(text: &str) -> Zone {
    if text == "UTC" {
        return Zone::Fixed(0);
    }
    if !text.contains(':') {
        return Zone::Unknown("parts of an instant in a time zone whose offset may change");
    }
    let Some(program) = PROGRAM.as_ref() else { return Zone::Unknown("parts of an instant in a time zone") };
    let arena = bumpalo::Bump::new();
    let mut bindings = Bindings::new(program);
    bindings.set("z", Value::String(text));
    let Ok(Value::List(parts)) = program.eval(&bindings, &mut Evaluation::new(&arena)) else {
        return Zone::None;
    };
    match parts.to_slice(&arena) {
        Ok([Value::Int(2001), Value::Int(day), Value::Int(hours), Value::Int(minutes)]) => {
            let days = day.saturating_sub(DAY).saturating_mul(1_440);
            let minutes = hours.saturating_mul(60).saturating_add(*minutes);
            Zone::Fixed(days.saturating_add(minutes).saturating_sub(NOON))
        }
        _ => Zone::Unknown("parts of an instant in a time zone that is far from UTC"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_those_of_the_engine() {
        for (text, expected) in [
            ("UTC", Zone::Fixed(0)),
            ("+02:00", Zone::Fixed(120)),
            ("02:30", Zone::Fixed(150)),
            ("-09:30", Zone::Fixed(-570)),
            ("23:59", Zone::Fixed(1439)),
            ("a:b", Zone::None),
        ] {
            assert_eq!(zone(text), expected, "{text}");
        }
        assert!(matches!(zone("Europe/Prague"), Zone::Unknown(_)));
    }
}
