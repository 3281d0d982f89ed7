//! Writes the script of a query, and derives variants of the solver's model to try.

use std::fmt::Write as _;

use super::document::World;
use super::model::{Given, Model};
use super::needed::Needed;
use super::term::Term;

/// The maximum number of strings that are replaced together.
const MOST_AT_ONCE: usize = 6;

/// Returns the model with other strings where string functions are only guessed: all replaced together, and each alone.
pub(super) fn variants(world: &World<'_>, broken: Term, model: &Model) -> Vec<Model> {
    let guesses = &world.guesses;
    if guesses.made.is_empty() {
        return Vec::new();
    }
    let in_question = world.terms.variables_of(&[broken]);
    let mut texts: Vec<Term> = in_question.into_iter().filter(|term| world.terms.is_text(*term)).collect();
    texts.extend(&guesses.texts);
    texts.sort();
    texts.dedup();
    // Strings that guessed functions read come first.
    texts.sort_by_key(|text| !guesses.texts.contains(text));
    let names: Vec<String> = texts.iter().map(|term| world.terms.name(*term)).take(MOST_AT_ONCE).collect();
    let mut found = Vec::new();
    for candidate in guesses.candidates() {
        let alone = names.iter().filter(|_| names.len() > 1).map(std::slice::from_ref);
        for changed in std::iter::once(names.as_slice()).chain(alone) {
            let mut other = model.clone();
            other.extend(changed.iter().map(|name| (name.clone(), Given::Text(candidate.clone()))));
            found.push(other);
        }
    }
    found
}

/// Returns the script, and the values of strings that are not part of it.
pub(super) fn script(world: &World<'_>, broken: Term) -> (String, Model) {
    let Needed { assumed, texts } = world.needed(&[broken]);
    let mut roots = assumed.clone();
    roots.push(broken);
    roots.extend(&world.cut_texts);
    let mut script = String::from("(set-option :produce-models true)\n(set-logic ALL)\n");
    world.terms.write(&roots, &mut script);
    let assert = |script: &mut String, term: &Term| {
        let _ = writeln!(script, "(assert {})", world.terms.name(*term));
    };
    assumed.iter().for_each(|term| assert(&mut script, term));
    if world.cut_texts.is_empty() {
        assert(&mut script, &broken);
        return (script + &world.terms.asked(&roots) + &world.asked_of_samples(&roots), texts);
    }
    script.push_str("(push 1)\n");
    assert(&mut script, &broken);
    script.push_str(&world.terms.asked(&roots));
    script.push_str(&world.asked_of_samples(&roots));
    script.push_str("(pop 1)\n");
    for there in &world.cut_texts {
        let _ = writeln!(script, "(push 1)\n(assert {})\n(check-sat)\n(pop 1)", world.terms.name(*there));
    }
    (script, texts)
}
