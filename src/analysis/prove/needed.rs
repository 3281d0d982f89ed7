//! What of a question a solver is asked: texts of which nothing but their own schema is known need no solver.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::document::World;
use super::literal::written_text;
use super::model::{Given, Model};
use super::term::{Term, Terms};

/// What is asked of a solver: the assumptions that matter for the goals, and the texts that nothing else depends on.
pub(super) struct Needed {
    pub(super) assumed: Vec<Term>,
    pub(super) texts: Model,
}

impl World<'_> {
    /// Leaves out the texts of which nothing is known but what their own schema demands, and that is known to be possible.
    pub(super) fn needed(&self, goals: &[Term]) -> Needed {
        let in_goals: BTreeSet<Term> = self.terms.variables_of(goals).into_iter().collect();
        let mut open = vec![true; self.assumed.len()];
        let elsewhere = self.texts_elsewhere();
        let mut texts = Model::new();
        for (variable, sample, own) in &self.own_texts {
            if elsewhere.contains(variable) || in_goals.contains(variable) {
                continue;
            }
            let own_variables = self.assumed.get(own.clone()).map(|own| self.terms.variables_of(own));
            if own_variables.is_none_or(|own| self.says_more(*variable, &own)) {
                continue;
            }
            open.get_mut(own.clone()).into_iter().flatten().for_each(|is_open| *is_open = false);
            texts.insert(self.terms.name(*variable), Given::Text(sample.to_string()));
        }
        let assumed = self.assumed.iter().zip(open).filter(|(_, is_open)| *is_open);
        Needed { assumed: assumed.map(|(term, _)| *term).collect(), texts }
    }

    /// The variables of assumptions that are not those of a text's own schema, or are those of another text's.
    fn texts_elsewhere(&self) -> BTreeSet<Term> {
        let mut is_own = vec![false; self.assumed.len()];
        let mut elsewhere = BTreeSet::new();
        for (variable, _, own) in &self.own_texts {
            is_own.get_mut(own.clone()).into_iter().flatten().for_each(|is_own| *is_own = true);
            let variables = self.terms.variables_of(self.assumed.get(own.clone()).unwrap_or_default());
            elsewhere.extend(variables.into_iter().filter(|other| other != variable));
        }
        let others = self.assumed.iter().zip(is_own).filter(|(_, is_own)| !is_own);
        let others: Vec<Term> = others.map(|(term, _)| *term).collect();
        elsewhere.extend(self.terms.variables_of(&others));
        elsewhere
    }

    /// Asks once more, of objects whose texts are those that were found without a solver: what schemas demand and is not followed
    /// they satisfy.
    pub(super) fn asked_of_samples(&self, roots: &[Term]) -> String {
        if self.relaxed.is_empty() && self.guesses.made.is_empty() {
            return String::new();
        }
        let variables: BTreeSet<Term> = self.terms.variables_of(roots).into_iter().collect();
        let mut script = String::from("(push 1)\n");
        for (variable, sample, _) in
            self.own_texts.iter().filter(|(variable, ..)| variables.contains(variable))
        {
            let _ = writeln!(script, "(assert (= {} {}))", self.terms.name(*variable), written_text(sample));
        }
        script + &self.terms.asked(roots) + "(pop 1)\n"
    }

    /// Whether an assumption is about more than one text and whether it is there.
    fn says_more(&self, variable: Term, variables: &[Term]) -> bool {
        variables
            .iter()
            .any(|other| *other != variable && (self.terms.is_text(*other) || self.terms.is_int(*other)))
    }
}

impl Terms {
    /// Asks whether what was said can be, and for which values of the terms' variables.
    pub(super) fn asked(&self, roots: &[Term]) -> String {
        self.asked_of(&self.variables_of(roots))
    }

    /// Asks whether what was said can be, and for which values of some variables.
    pub(super) fn asked_of(&self, variables: &[Term]) -> String {
        let names: Vec<String> = variables.iter().map(|term| self.name(*term)).collect();
        if names.is_empty() {
            return "(check-sat)\n".to_owned();
        }
        format!("(check-sat)\n(get-value ({}))\n", names.join(" "))
    }
}
