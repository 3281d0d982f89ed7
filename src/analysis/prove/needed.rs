//! Reduces a query to what a solver must decide: strings constrained only by their own schema get a sample instead.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::document::World;
use super::literal::written_text;
use super::model::{Given, Model};
use super::term::{Term, Terms};

/// The reduced query: the assumptions that matter for the goals, and the sample values of independent strings.
pub(super) struct Needed {
    pub(super) assumed: Vec<Term>,
    pub(super) texts: Model,
}

impl World<'_> {
    /// Leaves out strings that are constrained only by their own schema, for which a valid sample is known.
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

    /// Collects the string variables that occur in assumptions other than those of their own schema.
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

    /// Writes another query with all strings fixed to their samples, which also satisfy the schema constraints that are not translated.
    /// Empty if everything is translated.
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

    /// Reports whether assumptions involve other strings or numbers than this variable.
    fn says_more(&self, variable: Term, variables: &[Term]) -> bool {
        variables
            .iter()
            .any(|other| *other != variable && (self.terms.is_text(*other) || self.terms.is_int(*other)))
    }
}

impl Terms {
    /// Writes a query for satisfiability and for the values of the terms' variables.
    pub(super) fn asked(&self, roots: &[Term]) -> String {
        self.asked_of(&self.variables_of(roots))
    }

    /// Writes a query for satisfiability and for the values of some variables.
    pub(super) fn asked_of(&self, variables: &[Term]) -> String {
        let names: Vec<String> = variables.iter().map(|term| self.name(*term)).collect();
        if names.is_empty() {
            return "(check-sat)\n".to_owned();
        }
        format!("(check-sat)\n(get-value ({}))\n", names.join(" "))
    }
}
