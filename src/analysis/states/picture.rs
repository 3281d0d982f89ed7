//! The picture of one field, as data: its states, and what the rules say of each transition.

use admit_policy::GroupVersionKind;
use serde_json::Value;
use thiserror::Error;

use super::subject::Subject;

/// Which changes of a field the rules allow.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Of which objects.
    pub kind: GroupVersionKind,
    /// Of which field, or of what an expression says.
    pub subject: Subject,
    /// Which objects are meant, from their creation on, where not all are.
    pub only: Option<String>,
    /// Why no change is forbidden for certain, where that is so.
    pub limit: Option<Limit>,
    /// The field is written with the status.
    pub in_status: bool,
    /// The absent one first.
    pub states: Vec<StateOf>,
    /// Creations in each state, then changes from each state to each; to the same one where something else of the object changes.
    pub transitions: Vec<Transition>,
    /// Writes that were tried.
    pub tried: usize,
    /// The time was over before everything was tried.
    pub interrupted: bool,
}

/// One value of the field.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StateOf {
    /// The value; `absent` where the field is not there, `other` for all values that rules do not name.
    pub name: String,
    /// Whether an object comes into it.
    pub reach: Reach,
}

/// Whether an object comes into a state, from its creation on, under these rules.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reach {
    /// One did.
    Reached,
    /// The rules let none.
    Unreachable,
    /// None did of those that were tried.
    Undecided,
}

/// A creation, or a change from one state to another.
#[derive(Clone, Debug)]
pub struct Transition {
    /// None for a creation.
    pub from: Option<String>,
    /// The new state.
    pub to: String,
    /// What the rules say of it.
    pub verdict: Allowance,
}

/// What the rules say of a transition.
#[derive(Clone, Debug)]
pub enum Allowance {
    /// There is an object that may make it.
    Allowed {
        /// Such an object.
        example: Example,
        /// Every object that can be there may make it, whatever else it has.
        always: bool,
        /// The rules that speak of the field and refuse it for other objects; empty where none was found.
        conditions: Vec<RuleText>,
        /// Somebody in particular alone may make it, as far as was tried.
        user: Option<String>,
    },
    /// Allowed only for an object in a state that these rules did not let it come into, as far as was tried.
    Otherwise {
        /// Such an object.
        example: Example,
        /// Writes that were tried to others.
        tried: usize,
    },
    /// No object may make it.
    Forbidden {
        /// The rules that refuse it; several where they do so together.
        rules: Vec<RuleText>,
    },
    /// Refused for all objects that were tried.
    Undecided {
        /// Writes that were tried.
        tried: usize,
        /// What the one was refused for to which the least was objected.
        rules: Vec<RuleText>,
    },
}

/// A rule, as it is told of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleText {
    /// The policy, the definition, or the field that a schema refuses.
    pub origin: String,
    /// What it says when it refuses.
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

/// Why it is not known of all objects what rules say of a change.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Limit {
    /// Policies change objects.
    #[error("policies change objects before rules see them")]
    Mutating,
    /// What states are read from has no few values.
    #[error("the state is read from more than fields of few values")]
    Reads,
    /// What states are read from has too many values together.
    #[error("the state is read from {fields} fields, whose values have more than {most} combinations")]
    Combinations {
        /// How many fields.
        fields: usize,
        /// How many combinations are asked.
        most: usize,
    },
}

/// Why there is no picture.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum PictureError {
    /// The schema does not have the field.
    #[error("{kind} has no field `{field}`{hint}")]
    NoField {
        /// The kind.
        kind: String,
        /// The field.
        field: String,
        /// What else there may be to write.
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
    /// A state, or which objects are meant, is no expression.
    #[error("`{expression}` is no expression over `self`: {message}")]
    NotAnExpression {
        /// The text.
        expression: String,
        /// What is wrong.
        message: String,
    },
    /// A state is read from the status and from elsewhere.
    #[error("`{field}` is read from the status and from elsewhere: no request writes both")]
    Mixed {
        /// The state.
        field: String,
    },
    /// What was found contradicts what was concluded: a mistake of this program.
    #[error("the state `{state}` of `{field}` was concluded to be out of reach, and was reached")]
    Contradiction {
        /// The field.
        field: String,
        /// The state.
        state: String,
    },
    /// What was found is not admitted when it is asked again: a mistake of this program.
    #[error("a change of `{field}` to `{state}` was admitted once, and is not again")]
    Unconfirmed {
        /// The field.
        field: String,
        /// The new state.
        state: String,
    },
}

impl Transition {
    /// Whether the state stays as it is.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.from.as_deref() == Some(self.to.as_str())
    }

    /// Whether some object may make it.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        matches!(self.verdict, Allowance::Allowed { .. })
    }
}

impl Picture {
    /// Whether everything is decided for all objects, or shown by one.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        let is_unsure = self.states.iter().any(|state| state.reach == Reach::Undecided);
        !self.interrupted && !is_unsure && self.undecided().next().is_none()
    }

    /// Transitions that were not found, and may be there. What would follow a state that cannot be reached is none.
    pub fn undecided(&self) -> impl Iterator<Item = &Transition> {
        self.transitions.iter().filter(|transition| match transition.verdict {
            Allowance::Undecided { .. } | Allowance::Otherwise { .. } => self.may_start(transition),
            Allowance::Allowed { .. } | Allowance::Forbidden { .. } => false,
        })
    }

    /// Whether an object may be where the transition starts.
    #[must_use]
    pub fn may_start(&self, transition: &Transition) -> bool {
        !transition.from.as_deref().is_some_and(|from| {
            self.states.iter().any(|state| state.name == from && state.reach == Reach::Unreachable)
        })
    }

    /// States that an object stays in once it is there; whether that holds for all objects.
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

    /// What is allowed and changes the state: from no state where it is a creation.
    pub fn allowed(&self) -> impl Iterator<Item = &Transition> {
        self.transitions.iter().filter(|transition| transition.is_allowed() && !transition.keeps())
    }
}
