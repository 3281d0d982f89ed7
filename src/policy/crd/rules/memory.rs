//! Caches compiled expressions and patterns of definitions for callers that compile nearly the same definition repeatedly, as an editor
//! does on each keystroke. The results are the same as without the cache; only the time differs.
//!
//! Many functions that read a definition compile it, so the cache is not passed as an argument: it is thread-local while
//! [`remembering`] runs.

use std::cell::RefCell;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, LazyLock};

use admit_cel::{DeclKind, DeclType, KnownPattern, PatternSum, Program, Version};

use super::problem::ExpressionProblem;
use crate::recent::Recent;

/// The maximum size of half of the cache, in bytes: of expressions (estimated), and of patterns.
const MAX_EXPRESSIONS: usize = 48 << 20;
const MAX_PATTERNS: usize = 4 << 20;
/// The estimated size of an expression: fixed, per byte of its text, and per node of the type of `self`.
const PER_EXPRESSION: usize = 1_000;
const PER_BYTE: usize = 50;
const PER_NODE: usize = 150;

static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::new);

thread_local! {
    static AT_HAND: RefCell<Option<Memory>> = const { RefCell::new(None) };
}

/// A bounded cache of compiled expressions and patterns; the least recently used entries are dropped.
///
/// ```
/// use admit_policy::crd::CompiledCrd;
/// use admit_policy::crd::rules::{Memory, remembering};
/// use serde_json::json;
///
/// let definition = json!({
///     "apiVersion": "apiextensions.k8s.io/v1",
///     "kind": "CustomResourceDefinition",
///     "metadata": {"name": "cats.example.com"},
///     "spec": {
///         "group": "example.com",
///         "names": {"plural": "cats", "singular": "cat", "kind": "Cat", "listKind": "CatList"},
///         "scope": "Namespaced",
///         "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
///             "type": "object",
///             "x-kubernetes-validations": [{"rule": "self.metadata.name != 'tom'"}],
///         }}}],
///     },
/// });
/// let mut memory = Memory::default();
/// for _ in 0..2 {
///     assert!(remembering(&mut memory, || CompiledCrd::compile(&definition)).is_ok());
/// }
/// assert!(memory.recalled() > 0);
/// ```
#[derive(Debug)]
pub struct Memory {
    expressions: Recent<Key, Known>,
    patterns: Recent<Box<str>, KnownPattern>,
    recalled: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self { expressions: Recent::of(MAX_EXPRESSIONS), patterns: Recent::of(MAX_PATTERNS), recalled: 0 }
    }
}

impl Memory {
    /// Returns the number of cache hits.
    #[must_use]
    pub const fn recalled(&self) -> u64 {
        self.recalled
    }
}

/// Runs `work` with the cache `memory`: definitions compiled on this thread meanwhile use it and add to it.
///
/// [`Memory`] has an example.
pub fn remembering<T>(memory: &mut Memory, work: impl FnOnce() -> T) -> T {
    /// Restores the previous cache, however the work ends.
    struct Before<'m>(&'m mut Memory, Option<Memory>);
    impl Drop for Before<'_> {
        fn drop(&mut self) {
            *self.0 = AT_HAND.replace(self.1.take()).unwrap_or_default();
        }
    }
    let before = AT_HAND.replace(Some(std::mem::take(memory)));
    let _before = Before(memory, before);
    work()
}

/// The type of `self`, with a hash for fast comparison.
#[derive(Clone, Debug)]
pub(super) struct SelfType {
    decl: Arc<DeclType>,
    hash: u64,
    nodes: usize,
}

impl SelfType {
    pub(super) fn of(decl: &Arc<DeclType>) -> Self {
        Self { decl: Arc::clone(decl), hash: STATE.hash_one(decl), nodes: nodes(decl) }
    }
}

/// Counts the nodes of a type; the recursion is as deep as schemas nest.
fn nodes(decl: &DeclType) -> usize {
    let below = match &decl.kind {
        DeclKind::Scalar(_) | DeclKind::Date => 0,
        DeclKind::List { items, .. } => nodes(items),
        DeclKind::Map { value, .. } => nodes(value),
        DeclKind::Object { fields, .. } => {
            fields.iter().map(|field| nodes(&field.decl)).fold(0, usize::saturating_add)
        }
    };
    below.saturating_add(1)
}

/// Everything that determines the result of compiling an expression.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) of: SelfType,
    pub(super) text: Box<str>,
    pub(super) is_message: bool,
    pub(super) is_stored: bool,
    pub(super) optional_old_self: Option<bool>,
    pub(super) release: Version,
}

impl Key {
    fn rest(&self) -> (&str, bool, bool, Option<bool>, Version) {
        (&self.text, self.is_message, self.is_stored, self.optional_old_self, self.release)
    }

    fn weight(&self) -> usize {
        let text = self.text.len().saturating_mul(PER_BYTE);
        text.saturating_add(self.of.nodes.saturating_mul(PER_NODE)).saturating_add(PER_EXPRESSION)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        let (own, others) = (&self.of, &other.of);
        own.hash == others.hash
            && self.rest() == other.rest()
            && (Arc::ptr_eq(&own.decl, &others.decl) || own.decl == others.decl)
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.of.hash);
        self.text.hash(state);
    }
}

/// The result of compiling an expression.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) uses_old_self: bool,
    /// The program with its maximum estimated cost.
    pub(super) made: Result<(Program, u64), ExpressionProblem>,
    /// The patterns that count with it.
    pub(super) patterns: Vec<KnownPattern>,
}

/// Returns the cached result for an expression, or else the result of `work`. Its patterns count in `patterns` either way.
pub(super) fn expression(
    key: impl FnOnce() -> Key,
    patterns: &mut PatternSum,
    work: impl FnOnce(&mut PatternSum) -> Known,
) -> Known {
    if AT_HAND.with_borrow(Option::is_none) {
        return work(patterns);
    }
    let key = key();
    let known = AT_HAND.with_borrow_mut(|memory| memory.as_mut()?.expressions.get(&key));
    if let Some(known) = known
        && known.patterns.iter().all(|pattern| patterns.adopt(pattern).is_some())
    {
        recalled();
        return known;
    }
    let (mut known, seen) = patterns.watching(work);
    known.patterns = seen;
    // Whether a pattern fits the limit depends on the other patterns.
    if !matches!(known.made, Err(ExpressionProblem::Program(_))) {
        let weight = key.weight();
        AT_HAND.with_borrow_mut(|memory| {
            if let Some(memory) = memory {
                memory.expressions.put(key, known.clone(), weight);
            }
        });
    }
    known
}

/// Runs `work`, which compiles the pattern `text`; a cached one is put into `patterns` first.
pub(in crate::crd) fn pattern<T>(
    text: &str,
    patterns: &mut PatternSum,
    work: impl FnOnce(&mut PatternSum) -> T,
) -> T {
    if AT_HAND.with_borrow(Option::is_none) {
        return work(patterns);
    }
    let known = AT_HAND.with_borrow_mut(|memory| memory.as_mut()?.patterns.get(text));
    if known.is_some_and(|known| patterns.adopt(&known).is_some()) {
        recalled();
        return work(patterns);
    }
    let (done, seen) = patterns.watching(work);
    AT_HAND.with_borrow_mut(|memory| {
        for (memory, known) in memory.iter_mut().zip(seen) {
            let weight = known.size();
            memory.patterns.put(text.into(), known, weight);
        }
    });
    done
}

fn recalled() {
    AT_HAND.with_borrow_mut(|memory| {
        if let Some(memory) = memory {
            memory.recalled = memory.recalled.saturating_add(1);
        }
    });
}
