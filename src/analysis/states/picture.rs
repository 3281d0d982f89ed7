//! The state diagram of one field, as data: its states, and for each transition whether the rules allow it.

use admit_policy::GroupVersionKind;
use serde_json::Value;
use thiserror::Error;

use super::subject::Subject;

/// Which changes of a field the rules allow.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The kind of the objects.
    pub kind: GroupVersionKind,
    /// The field, or the expression, whose values are the states.
    pub subject: Subject,
    /// The condition that considered objects satisfy; None if all are considered.
    pub only: Option<String>,
    /// Why no transition can be proved forbidden, where that is so.
    pub limit: Option<Limit>,
    /// Whether the field is written through the status subresource.
    pub in_status: bool,
    /// The states; the one of an absent field comes first.
    pub states: Vec<StateOf>,
    /// Creations in each state, then changes between all pairs of states; from a state to itself if another field changes.
    pub transitions: Vec<Transition>,
    /// The number of writes that were tried.
    pub tried: usize,
    /// Whether time ran out before everything was tried.
    pub interrupted: bool,
}

/// One value of the field.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StateOf {
    /// The value; `absent` where the field is not there, `other` for all values that rules do not name.
    pub name: String,
    /// Whether an object can get into this state.
    pub reach: Reach,
}

/// Whether an object can get into a state from its creation on, under these rules.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reach {
    /// An admitted sequence of writes leads there.
    Reached,
    /// The rules forbid every way.
    Unreachable,
    /// No way was found among those that were tried.
    Undecided,
}

/// A creation, or a change from one state to another.
#[derive(Clone, Debug)]
pub struct Transition {
    /// None for a creation.
    pub from: Option<String>,
    /// The new state.
    pub to: String,
    /// Whether the rules allow it.
    pub verdict: Allowance,
}

/// Whether the rules allow a transition.
#[derive(Clone, Debug)]
pub enum Allowance {
    /// Allowed: an object was found that makes it.
    Allowed {
        /// Such an object.
        example: Example,
        /// Every object may make it, whatever its other fields hold.
        always: bool,
        /// Rules about this field that refuse the transition for other objects; empty where none was found.
        conditions: Vec<RuleText>,
        /// The only user who may make it, as far as was tried; None where others may, too.
        user: Option<String>,
    },
    /// Allowed only from a state that no object was found to reach.
    Otherwise {
        /// Such an object.
        example: Example,
        /// Writes that were tried to others.
        tried: usize,
    },
    /// Forbidden for every object.
    Forbidden {
        /// The rules that refuse it; several where only their combination does.
        rules: Vec<RuleText>,
    },
    /// Refused for every object that was tried, which is no proof.
    Undecided {
        /// Writes that were tried.
        tried: usize,
        /// The rules that refused the object that came closest to being admitted.
        rules: Vec<RuleText>,
    },
}

/// A rule, as reports show it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleText {
    /// The policy, the definition, or the field that a schema refuses.
    pub origin: String,
    /// The message of its refusals.
    pub message: String,
    /// The expression; empty where it is none.
    pub text: String,
}

/// An admitted write.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// None for a creation.
    pub old: Option<Value>,
    /// What is written.
    pub new: Value,
    /// Who writes it.
    pub user: String,
}

/// Why no statement about all objects is possible.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Limit {
    /// Mutating policies change the objects.
    #[error("policies change objects before rules see them")]
    Mutating,
    /// The states depend on something other than fields with few values.
    #[error("the state is read from more than fields of few values")]
    Reads,
    /// The fields that the states depend on have too many combinations of values.
    #[error("the state is read from {fields} fields, whose values have more than {most} combinations")]
    Combinations {
        /// How many fields.
        fields: usize,
        /// How many combinations are asked.
        most: usize,
    },
}

/// Why no diagram can be made.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum PictureError {
    /// The schema does not have the field.
    #[error("{kind} has no field `{field}`{hint}")]
    NoField {
        /// The kind.
        kind: String,
        /// The field.
        field: String,
        /// A suggestion for what to write instead.
        hint: &'static str,
    },
    /// It has too many values.
    #[error("`{field}` has no few values: its schema lists none, and no rule compares it with constants")]
    Unbounded {
        /// The field.
        field: String,
    },
    /// There are more states than are drawn.
    #[error(
        "`{field}` has {count} values, of which at most {most} are drawn: --state draws what an expression says of them, such as `self.{field} == 'A' ? 'A' : 'other'`"
    )]
    TooMany {
        /// The field.
        field: String,
        /// Its values.
        count: usize,
        /// How many are drawn.
        most: usize,
    },
    /// The expression of a state, or the condition on objects, is invalid.
    #[error("`{expression}` is no expression over `self`: {message}")]
    NotAnExpression {
        /// The text.
        expression: String,
        /// What is wrong.
        message: String,
    },
    /// A state depends on the status and on other fields.
    #[error("`{field}` is read from the status and from elsewhere: no request writes both")]
    Mixed {
        /// The state.
        field: String,
    },
    /// An example contradicts a proof: a bug of this program.
    #[error("the state `{state}` of `{field}` was concluded to be out of reach, and was reached")]
    Contradiction {
        /// The field.
        field: String,
        /// The state.
        state: String,
    },
    /// An example is not admitted when it is evaluated again: a bug of this program.
    #[error("a change of `{field}` to `{state}` was admitted once, and is not again")]
    Unconfirmed {
        /// The field.
        field: String,
        /// The new state.
        state: String,
    },
}

impl Transition {
    /// Reports whether the state stays the same.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.from.as_deref() == Some(self.to.as_str())
    }

    /// Reports whether some object may make it.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        matches!(self.verdict, Allowance::Allowed { .. })
    }
}

impl Picture {
    /// Reports whether every transition is decided for all objects, or shown by an example.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        let is_unsure = self.states.iter().any(|state| state.reach == Reach::Undecided);
        !self.interrupted && !is_unsure && self.undecided().next().is_none()
    }

    /// Returns transitions that were not found and may exist; those from unreachable states are left out.
    pub fn undecided(&self) -> impl Iterator<Item = &Transition> {
        self.transitions.iter().filter(|transition| match transition.verdict {
            Allowance::Undecided { .. } | Allowance::Otherwise { .. } => self.may_start(transition),
            Allowance::Allowed { .. } | Allowance::Forbidden { .. } => false,
        })
    }

    /// Reports whether an object may be in the state where the transition starts.
    #[must_use]
    pub fn may_start(&self, transition: &Transition) -> bool {
        !transition.from.as_deref().is_some_and(|from| {
            self.states.iter().any(|state| state.name == from && state.reach == Reach::Unreachable)
        })
    }

    /// Returns states that no object leaves, each with whether that is proved for all objects.
    pub fn dead_ends(&self) -> impl Iterator<Item = (&str, bool)> {
        self.states.iter().filter(|state| state.reach == Reach::Reached).filter_map(|state| {
            let from = |transition: &&Transition| {
                transition.from.as_deref() == Some(state.name.as_str()) && !transition.keeps()
            };
            let out: Vec<&Transition> = self.transitions.iter().filter(from).collect();
            let is_end = !out.iter().any(|transition| transition.is_allowed());
            let is_exact =
                out.iter().all(|transition| matches!(transition.verdict, Allowance::Forbidden { .. }));
            is_end.then_some((state.name.as_str(), is_exact))
        })
    }

    /// Returns allowed transitions that change the state; the origin is `None` for a creation.
    pub fn allowed(&self) -> impl Iterator<Item = &Transition> {
        self.transitions.iter().filter(|transition| transition.is_allowed() && !transition.keeps())
    }
}
