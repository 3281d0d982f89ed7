//! Decides whether a new version of a CustomResourceDefinition accepts everything that the old one accepts.
//!
//! ```text
//! what is written ──old schema──► what the old one stores ──new schema──► what the new one reads ──► keywords and rules that differ
//!                     defaults                             pruning, defaults                          each asked about alone
//! ```
//!
//! It considers requests without fields that the old definition would prune, and without lists in place of strings that have a format,
//! which servers accept. An update changes a stored object through the version in which it was stored.

use std::sync::Arc;

use admit_policy::crd::{CompiledCrd, CrdVersion};
use serde_json::Value as Json;

use super::document::World;
use super::refusals::{Question, Report, Seen};
use super::subject::{SideError, compiled};
use super::view::View;
use super::wider::Part;
use super::written::{Step, Trial};
use super::{Solver, undecided};

/// The old and the new definition of an upgrade.
///
/// ```
/// use admit_analysis::prove::{Solver, SolverError, Step, Upgrade};
/// use serde_json::json;
///
/// let definition = |modes: &[&str]| {
///     json!({
///         "apiVersion": "apiextensions.k8s.io/v1",
///         "kind": "CustomResourceDefinition",
///         "metadata": {"name": "cats.example.com"},
///         "spec": {
///             "group": "example.com",
///             "names": {"plural": "cats", "singular": "cat", "kind": "Cat"},
///             "scope": "Cluster",
///             "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
///                 "type": "object",
///                 "properties": {"mood": {"type": "string", "enum": modes}},
///             }}}],
///         },
///     })
/// };
/// let upgrade = Upgrade::new(&definition(&["good", "bad"]), &definition(&["good", "bad", "odd"]))?;
/// assert_eq!((upgrade.versions(), upgrade.removed()), (vec!["v1".to_owned()], vec![]));
///
/// assert_eq!(upgrade.steps("v1"), [Step::Create, Step::Update], "it has no status of its own");
/// assert!(upgrade.without_status().is_empty(), "neither had it before");
///
/// /// What a solver says of a question that it refutes.
/// struct Refutes;
/// impl Solver for Refutes {
///     fn ask(&mut self, _: &str) -> Result<String, SolverError> {
///         Ok("unsat\nunsat\n".to_owned())
///     }
/// }
/// let report = upgrade.decide("v1", Step::Create, 3, &mut Refutes, &|| false);
/// assert!(report.breaks.is_empty() && report.undecided.is_empty());
/// # Ok::<(), admit_analysis::prove::SideError>(())
/// ```
#[derive(Debug)]
pub struct Upgrade {
    old: Arc<CompiledCrd>,
    new: Arc<CompiledCrd>,
}

impl Upgrade {
    /// Reads both definitions.
    ///
    /// # Errors
    /// If a server rejects one of them, or rejects the new one as an update of the old one.
    pub fn new(old: &Json, new: &Json) -> Result<Self, SideError> {
        let replacing = CompiledCrd::compile_update(new, old).map_err(|errors| {
            SideError::of_fields(errors.into_iter().map(|error| (error.field.clone(), error.to_string())))
        })?;
        Ok(Self { old: Arc::new(compiled(old)?), new: Arc::new(replacing) })
    }

    /// Takes two definitions without checking that one may replace the other.
    pub(super) const fn of(old: Arc<CompiledCrd>, new: Arc<CompiledCrd>) -> Self {
        Self { old, new }
    }

    /// Returns the versions that both serve.
    #[must_use]
    pub fn versions(&self) -> Vec<String> {
        let is_served =
            |name: &str| self.new.definition().version(name).is_some_and(|version| version.served);
        self.served().filter(|name| is_served(name)).collect()
    }

    /// Returns the versions that only the old one serves.
    #[must_use]
    pub fn removed(&self) -> Vec<String> {
        let kept = self.versions();
        self.served().filter(|name| !kept.contains(name)).collect()
    }

    /// Returns the versions that both serve and that lose their status subresource.
    #[must_use]
    pub fn without_status(&self) -> Vec<String> {
        let has_status = |crd: &CompiledCrd, name: &str| {
            crd.definition().version(name).is_some_and(|version| version.status_subresource)
        };
        let loses = |name: &String| has_status(&self.old, name) && !has_status(&self.new, name);
        self.versions().into_iter().filter(loses).collect()
    }

    fn served(&self) -> impl Iterator<Item = String> {
        self.old
            .definition()
            .versions
            .iter()
            .filter(|version| version.served)
            .map(|version| version.name.clone())
    }

    /// Returns the steps of a version: without status subresource there is no [`Step::Status`].
    #[must_use]
    pub fn steps(&self, version: &str) -> Vec<Step> {
        let has_status = |crd: &CompiledCrd| {
            crd.definition().version(version).is_some_and(|version| version.status_subresource)
        };
        let mut steps = vec![Step::Create, Step::Update];
        steps.extend((has_status(&self.old) && has_status(&self.new)).then_some(Step::Status));
        steps
    }

    /// Decides what the new definition rejects in one step, in a version that both serve.
    #[must_use]
    pub fn decide(
        &self,
        version: &str,
        step: Step,
        items: usize,
        solver: &mut dyn Solver,
        over: &dyn Fn() -> bool,
    ) -> Report {
        let open = |undecided| Report { undecided: vec![undecided], ..Report::default() };
        let (Some(old), Some(new)) = (Seen::of(&self.old, version), Seen::of(&self.new, version)) else {
            return open(undecided(format!("version {version} is not in both definitions")));
        };
        let versions = self.old.version(version).zip(self.new.version(version));
        let Some((old_version, new_version)) = versions else {
            return open(undecided(format!("version {version} is not in both definitions")));
        };
        let trial = Trial { old: &self.old, new: &self.new, versions: (old_version, new_version), step };
        let same_paths = same_paths(old_version, new_version);
        let asked = |world, solver: &mut dyn Solver| {
            let mut question = Question::new(world, &old, &new, step)?;
            let report = question.asked(&trial, same_paths, solver, over);
            Ok((question.wider(&report), report))
        };
        match asked(World::new(items, View::Typed), solver) {
            Ok((Some(items), report)) => {
                match asked(World::wide(items, View::Typed), &mut Part::of(solver)) {
                    Ok((_, wider)) => report.widened(wider),
                    Err(_) => report,
                }
            }
            Ok((None, report)) => report,
            Err(undecided) => open(undecided),
        }
    }
}

/// Reports whether the scale subresource reads the same paths; its checks are not modelled.
fn same_paths(old: &CrdVersion, new: &CrdVersion) -> bool {
    let paths = |version: &CrdVersion| {
        version.scale().map(|scale| {
            (scale.spec_replicas.clone(), scale.status_replicas.clone(), scale.label_selector.clone())
        })
    };
    new.scale().is_none() || paths(old) == paths(new)
}
