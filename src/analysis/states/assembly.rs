//! Builds a picture from what holds for all objects and from the examples found, each of which is evaluated once more.

use super::exact::Exact;
use super::explore::{Edge, Explored, Found, Search};
use super::judge::{Objection, Speaker};
use super::picture::{
    Allowance, Example, Limit, Picture, PictureError, Reach, RuleText, StateOf, Transition,
};
use super::rules::Rule;
use super::values::{State, StateValue};

/// The inputs of a picture.
pub(super) struct Assembly<'a> {
    pub(super) search: Search<'a>,
    pub(super) exact: Option<&'a Exact>,
    pub(super) explored: Explored,
    /// Why no transition can be proved forbidden.
    pub(super) limit: Option<Limit>,
}

impl Assembly<'_> {
    pub(super) fn picture(self) -> Result<Picture, PictureError> {
        let space = self.search.space;
        let mut states = Vec::with_capacity(space.states.len());
        for (index, state) in self.shown() {
            let reached = self.explored.reached.get(index) == Some(&true);
            let reach = match (reached, self.exact.and_then(|exact| exact.reachable.get(index))) {
                (true, Some(false)) => {
                    let field = space.subject.to_string();
                    return Err(PictureError::Contradiction { field, state: state.name.clone() });
                }
                (true, _) => Reach::Reached,
                (false, Some(false)) => Reach::Unreachable,
                (false, _) => Reach::Undecided,
            };
            states.push(StateOf { name: state.name.clone(), reach });
        }
        let mut transitions = Vec::new();
        for (to, state) in self.shown() {
            let verdict = self.creation(to)?;
            transitions.push(Transition { from: None, to: state.name.clone(), verdict });
        }
        for (from, old) in self.shown() {
            for (to, new) in self.shown() {
                // Nothing keeps a state that nothing has.
                if from == to && self.explored.reached.get(from) != Some(&true) {
                    continue;
                }
                let verdict = self.change(from, to)?;
                transitions.push(Transition { from: Some(old.name.clone()), to: new.name.clone(), verdict });
            }
        }
        Ok(Picture {
            kind: self.search.judge.kind.clone(),
            subject: space.subject.clone(),
            only: space.only.as_ref().map(|only| only.text.clone()),
            limit: self.limit.clone(),
            in_status: self.search.judge.status,
            states,
            transitions,
            tried: self.explored.tried,
            interrupted: self.explored.interrupted,
        })
    }

    /// Lists the states to show; the one in which the expression fails only if an object can reach it.
    fn shown(&self) -> impl Iterator<Item = (usize, &State)> {
        let is_never =
            |index: usize| self.exact.is_some_and(|exact| exact.reachable.get(index) == Some(&false));
        let all = self.search.space.states.iter().enumerate();
        all.filter(move |(index, state)| state.value != StateValue::Failed || !is_never(*index))
    }

    fn creation(&self, to: usize) -> Result<Allowance, PictureError> {
        let edge = self.explored.creations.get(to).cloned().unwrap_or_default();
        if let Some(found) = &edge.found {
            return self.allowed(found, to, false);
        }
        if let Some(exact) = self.exact.filter(|exact| exact.creatable.get(to) == Some(&false)) {
            let refusing = exact.refusing_creation.get(to).map(Vec::as_slice).unwrap_or_default();
            return Ok(Allowance::Forbidden { rules: self.or_server(refusing) });
        }
        // A creation does not write the status, whatever is in it.
        if self.search.judge.status && self.created() != Some(to) {
            return Ok(Allowance::Forbidden { rules: self.or_server(&[]) });
        }
        Ok(self.undecided(&edge))
    }

    fn change(&self, from: usize, to: usize) -> Result<Allowance, PictureError> {
        let edge = self.explored.edges.get(from).and_then(|row| row.get(to)).cloned().unwrap_or_default();
        if let Some(found) = &edge.found {
            return self.allowed(found, to, self.exact.is_some_and(|exact| exact.is_always(from, to)));
        }
        if let Some(exact) = self.exact.filter(|exact| !exact.may(from, to)) {
            return Ok(Allowance::Forbidden { rules: self.or_server(exact.refusing(from, to)) });
        }
        match &edge.otherwise {
            Some(found) => {
                Ok(Allowance::Otherwise { example: self.confirmed(found, to)?, tried: edge.tried })
            }
            None => Ok(self.undecided(&edge)),
        }
    }

    /// Returns the state of an object without status, as creation leaves it.
    fn created(&self) -> Option<usize> {
        let mut bare = self.search.space.bases.first()?.clone();
        if let Some(fields) = bare.as_object_mut() {
            fields.shift_remove("status");
        }
        self.search.space.state_of(&self.search.judge.stored(&bare))
    }

    fn allowed(&self, found: &Found, to: usize, always: bool) -> Result<Allowance, PictureError> {
        let example = self.confirmed(found, to)?;
        let user = (found.user > 0).then(|| example.user.clone());
        let conditions = if always { Vec::new() } else { self.texts(&self.search.conditions(found, to)) };
        Ok(Allowance::Allowed { example, always, conditions, user })
    }

    /// Evaluates an example once more, so that the picture shows only what is confirmed.
    fn confirmed(&self, found: &Found, to: usize) -> Result<Example, PictureError> {
        let Search { judge, space, users, .. } = &self.search;
        let user = users.get(found.user).cloned().unwrap_or_default();
        let trial = judge.write(found.old.as_ref(), &found.new, &user);
        if !trial.objections.is_empty() || space.state_of(&trial.stored) != Some(to) {
            let state = space.states.get(to).map(|state| state.name.clone()).unwrap_or_default();
            return Err(PictureError::Unconfirmed { field: space.subject.to_string(), state });
        }
        Ok(Example { old: found.old.clone(), new: found.new.clone(), user: user.username })
    }

    fn undecided(&self, edge: &Edge) -> Allowance {
        let nearest = edge.nearest.as_deref().unwrap_or_default();
        Allowance::Undecided {
            tried: edge.tried,
            rules: nearest.iter().map(|objection| self.told(objection)).collect(),
        }
    }

    fn texts(&self, rules: &[usize]) -> Vec<RuleText> {
        let rule = |index: &usize| self.search.rules.get(*index).map(text_of);
        let mut texts: Vec<RuleText> = Vec::new();
        for text in rules.iter().filter_map(rule) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts
    }

    /// Returns the rules, or the fact that creations do not write the status.
    fn or_server(&self, rules: &[usize]) -> Vec<RuleText> {
        let texts = self.texts(rules);
        if !texts.is_empty() {
            return texts;
        }
        let message = match self.search.judge.status {
            true => "a creation writes no status".to_owned(),
            false => "its schema does not take it".to_owned(),
        };
        vec![RuleText { origin: self.search.judge.kind.kind.clone(), message, text: String::new() }]
    }

    fn told(&self, objection: &Objection) -> RuleText {
        if let Some(rule) = self.search.rules.iter().find(|rule| rule.says(objection)) {
            return RuleText { message: objection.message.clone(), ..text_of(rule) };
        }
        let origin = match &objection.by {
            Speaker::Server { field, .. } => field.clone(),
            Speaker::Policy { name, .. } => name.clone(),
        };
        RuleText { origin, message: objection.message.clone(), text: String::new() }
    }
}

fn text_of(rule: &Rule) -> RuleText {
    let message =
        if rule.message.is_empty() { format!("failed rule: {}", rule.text) } else { rule.message.clone() };
    RuleText { origin: rule.origin.clone(), message, text: rule.text.clone() }
}
