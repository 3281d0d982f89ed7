//! Optionals that hold something else than what was put into them, or that are found where no `?` was before: claims about them stay
//! open, for a server denies where their values, taken as they are, would not.

use admit_analysis::prove::Verdict;

use super::large::{doubled, never_denies};
use super::solvers::Program;

#[test]
fn what_optionals_lose_is_not_taken_for_there() {
    let policies = [
        // A quantity cannot be had back from an optional that a conditional, as `optMap` is one, has made.
        ("''", "object.?metadata.optMap(m, quantity('1')).orValue(quantity('2')).isLessThan(quantity('5'))"),
        ("''", "[optional.of(quantity('1'))].all(one, one.value().isLessThan(quantity('5')))"),
        ("''", "[optional.of(optional.of(1))].all(one, one.value().hasValue())"),
        // A variable is a field, and a selection from an optional in a field finds nothing.
        ("object.?metadata", "variables.v0.?name.hasValue()"),
        ("object.?metadata", "variables.v0[?'name'].hasValue()"),
        ("[optional.of(1)]", "[object.?metadata][0].?name.hasValue()"),
    ];
    for mut solver in Program::installed() {
        for (variable, validation) in policies {
            let verdict = never_denies(&doubled(variable, 0, validation), &mut solver);
            assert!(!matches!(verdict, Verdict::Holds { .. }), "{validation}: {verdict:?}");
        }
        let known = [
            ("object.?metadata", "variables.v0.hasValue() && variables.v0.value().?name.hasValue()"),
            ("''", "object.?metadata.?name.hasValue() && object.?metadata.name.hasValue()"),
            ("''", "[object.?metadata].all(one, one.?name.hasValue())"),
        ];
        for (variable, validation) in known {
            let verdict = never_denies(&doubled(variable, 0, validation), &mut solver);
            assert_eq!(verdict, Verdict::Holds { up_to: None }, "{validation}");
        }
    }
}
