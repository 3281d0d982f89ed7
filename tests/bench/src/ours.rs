//! Evaluates a case with admit-cel, from each form in which callers have a document.

use admit_cel::{
    Bindings, Env, Evaluation, Mode, Node, Program, ReadLimits, Slot, Type, Value, Version, document,
};
use bumpalo::Bump;
use serde_json::Value as Json;

use crate::cases::Case;

/// A compiled case.
#[derive(Debug)]
pub struct Ours {
    program: Program,
    slots: Vec<Slot>,
}

/// Returns the environment of a case, whose variables have no declared type, as in admission policies.
#[must_use]
pub fn environment(case: &Case) -> Env {
    Env::kubernetes(Version(1, 36), Mode::New)
        .with_variables(case.documents.iter().map(|(name, _)| (*name, Type::Dyn)))
}

impl Ours {
    /// Compiles a case.
    ///
    /// # Panics
    ///
    /// If the case does not compile.
    #[must_use]
    #[expect(clippy::unwrap_used, reason = "a case that does not compile is a mistake of this package")]
    pub fn compile(case: &Case) -> Self {
        let env = environment(case);
        let program = env.program(&env.compile(case.text).unwrap()).unwrap();
        let slots = case.documents.iter().filter_map(|(name, _)| program.slot(name)).collect();
        Self { program, slots }
    }

    /// Converts `serde_json` documents to values of the variables.
    #[must_use]
    pub fn bind<'a>(&'a self, case: &'a Case) -> Bindings<'a> {
        let mut bindings = Bindings::new(&self.program);
        for (slot, (_, json)) in self.slots.iter().zip(&case.documents) {
            bindings.set_slot(*slot, Value::untyped(Node::from_json(json)));
        }
        bindings
    }

    /// Parses JSON documents to values of the variables.
    ///
    /// # Panics
    ///
    /// When a text is not JSON.
    #[expect(clippy::unwrap_used, reason = "a document that is not JSON is a mistake of this package")]
    pub fn read<'a>(&'a self, arena: &'a Bump, texts: &'a [Vec<u8>]) -> Bindings<'a> {
        let mut bindings = Bindings::new(&self.program);
        for (slot, text) in self.slots.iter().zip(texts) {
            let node = document::parse(arena, text, &ReadLimits::default()).unwrap();
            bindings.set_slot(*slot, Value::untyped(node));
        }
        bindings
    }

    /// Evaluates under Kubernetes' limits; returns whether the result is true.
    pub fn eval<'a>(&'a self, arena: &'a Bump, bindings: &Bindings<'a>) -> bool {
        matches!(self.program.eval(bindings, &mut Evaluation::new(arena)), Ok(Value::Bool(true)))
    }

    /// Converts `serde_json` values, evaluates and returns the result, in a reused arena.
    pub fn run(&self, arena: &mut Bump, case: &Case) -> bool {
        let result = self.eval(arena, &self.bind(case));
        arena.reset();
        result
    }
}

/// Returns the documents of a case as JSON texts.
#[must_use]
pub fn texts(case: &Case) -> Vec<Vec<u8>> {
    case.documents.iter().map(|(_, json): &(_, Json)| json.to_string().into_bytes()).collect()
}
