//! Reads the inputs of pictures of states: definitions, policies, objects to start from, and users.

use std::path::PathBuf;

use admit_analysis::states::{Diagram, FieldPath, Inquiry, Picture, PictureError, Subject, compare};
use admit_apiserver::BuiltinKinds;
use admit_policy::manifest::Document;
use admit_policy::suite::{StatesCase, StatesOf, Suite};
use admit_policy::{GroupVersionKind, LoadOptions, PolicySet, UserInfo};
use serde_json::Value;

use crate::cli::process::Fault;
use crate::cli::{conversion, load};

/// The definitions and policies to draw, and the objects and users to try.
#[derive(Debug)]
pub(in crate::cli) struct Inputs {
    set: PolicySet,
    documents: Vec<Document>,
    given: Vec<Value>,
    users: Vec<UserInfo>,
}

impl Inputs {
    /// Reads files, and the suites among them.
    ///
    /// # Errors
    /// When a file cannot be read or does not compile.
    pub(in crate::cli) fn read(
        policies: &[PathBuf],
        filenames: &[PathBuf],
        users: &[String],
        options: LoadOptions,
    ) -> Result<Self, Fault> {
        let documents = load::policy_documents(policies)?;
        let mut given = Vec::new();
        let mut take = |document: Document| {
            given.push(document.value);
            Ok(())
        };
        load::each_document(filenames, &mut take)?.tell();
        Self::of(documents, given, users, options)
    }

    /// Compiles `documents`, and reads the suites among them; also uses the `given` objects.
    ///
    /// # Errors
    /// When a document does not compile.
    pub(in crate::cli) fn of(
        documents: Vec<Document>,
        mut given: Vec<Value>,
        users: &[String],
        options: LoadOptions,
    ) -> Result<Self, Fault> {
        let set = PolicySet::load_with(&documents, options)
            .map_err(|errors| load::with_hint(load::not_compiled(&errors)))?
            .converting(conversion::offline)
            .knowing(&BuiltinKinds);
        let user = |name: &String| UserInfo { username: name.clone(), ..UserInfo::default() };
        let mut users: Vec<UserInfo> = users.iter().map(user).collect();
        for document in documents.iter().filter(|document| Suite::is(&document.value)) {
            // An unreadable suite is reported when it is run.
            let Ok(suite) = Suite::decode_knowing(&document.value, Some(&BuiltinKinds)) else { continue };
            for case in suite.cases {
                let objects = [case.old_object, case.object].into_iter().flatten();
                given.extend(objects.map(|object| Value::clone(&object)));
                if !users.contains(&case.user) {
                    users.push(case.user);
                }
            }
        }
        Ok(Self { set, documents, given, users })
    }

    /// Returns where the pictures differ from what a suite expects of a field; empty if they do not.
    ///
    /// # Errors
    /// For unknown fields and contradictions in what the suite says.
    pub(in crate::cli) fn differences(
        &self,
        case: &StatesCase,
        over: &dyn Fn() -> bool,
    ) -> Result<Vec<String>, Fault> {
        let diagram = Diagram::listed(case.expect.iter().map(String::as_str))
            .map_err(|error| Fault::usage(format!("{}: expect: {error}", case.name)))?;
        let (what, subject) = match &case.subject {
            StatesOf::Field(field) => {
                let path = field
                    .parse::<FieldPath>()
                    .map_err(|error| Fault::usage(format!("{}: field: {error}", case.name)))?;
                ("field", Subject::Field(path))
            }
            StatesOf::State(expression) => {
                ("state", Subject::State { name: case.name.clone(), expression: expression.clone() })
            }
        };
        let mut missing = None;
        for kind in self.kinds(case.kind.as_deref())? {
            match self.inquiry(&kind, case.only.as_deref(), over).picture(&subject) {
                Ok(picture) => return Ok(told(&picture, &diagram)),
                Err(error) => drop(missing.get_or_insert(passed_over(error)?)),
            }
        }
        let missing = missing.map_or_else(|| "no kind has it".to_owned(), |error| error.to_string());
        Err(Fault::usage(format!("{}: {what}: {missing}", case.name)))
    }

    /// Returns the kinds and fields to draw: `subjects` of each kind, or if there are none the fields that rules compare.
    pub(super) fn asked<'k>(
        &'k self,
        kinds: &'k [GroupVersionKind],
        subjects: &[Subject],
        only: Option<&'k str>,
        over: &'k dyn Fn() -> bool,
    ) -> Vec<(&'k GroupVersionKind, Subject)> {
        if !subjects.is_empty() {
            let each = |kind| subjects.iter().map(move |one| (kind, one.clone()));
            return kinds.iter().flat_map(each).collect();
        }
        let found = |kind| {
            let fields = self.inquiry(kind, only, over).fields().into_iter();
            fields.map(move |field| (kind, Subject::Field(field)))
        };
        kinds.iter().flat_map(found).collect()
    }

    /// Draws every field that rules compare; empty if there is no such field.
    ///
    /// # Errors
    /// When something cannot be drawn.
    pub(in crate::cli) fn compared(&self, over: &dyn Fn() -> bool) -> Result<Vec<Picture>, Fault> {
        let kinds = self.kinds(None)?;
        let mut pictures = Vec::new();
        for (kind, subject) in self.asked(&kinds, &[], None, over) {
            match self.inquiry(kind, None, over).picture(&subject) {
                Ok(picture) => pictures.push(picture),
                Err(error) => drop(passed_over(error)?),
            }
        }
        Ok(pictures)
    }

    pub(super) fn inquiry<'i>(
        &'i self,
        kind: &'i GroupVersionKind,
        only: Option<&'i str>,
        over: &'i dyn Fn() -> bool,
    ) -> Inquiry<'i> {
        let Self { set, documents, given, users } = self;
        Inquiry { set, documents, kind, given, users, only, over }
    }

    /// Returns the defined kinds and those of given objects, filtered by `asked`.
    pub(super) fn kinds(&self, asked: Option<&str>) -> Result<Vec<GroupVersionKind>, Fault> {
        let mut kinds = Vec::new();
        for crd in self.set.documents().crds() {
            let definition = crd.definition();
            let served = definition.versions.iter().filter(|version| version.served);
            kinds.extend(served.map(|version| {
                GroupVersionKind::new(&*definition.group, &*version.name, &*definition.names.kind)
            }));
        }
        for kind in self.given.iter().map(GroupVersionKind::of) {
            // Without a CRD, only built-in kinds have known behaviour.
            let is_known = self.set.documents().crd_of(&kind).is_some() || !kind.group.contains('.');
            if is_known && !kind.kind.is_empty() && !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        if kinds.is_empty() {
            return Err(Fault::usage(
                "no file of --policies defines a kind, and -f gives no object of one: name the file of its \
                 CustomResourceDefinition with --policies",
            ));
        }
        let Some(asked) = asked else { return Ok(kinds) };
        let all = kinds.clone();
        kinds.retain(|kind| {
            let full = format!("{}.{}.{}", kind.kind, kind.version, kind.group);
            asked.eq_ignore_ascii_case(&kind.kind) || asked.eq_ignore_ascii_case(full.trim_end_matches('.'))
        });
        if kinds.is_empty() {
            let mut names: Vec<&str> = all.iter().map(|kind| kind.kind.as_str()).collect();
            names.dedup();
            return Err(Fault::usage(format!(
                "there is no kind `{asked}` among the files; there are: {}",
                names.join(", ")
            )));
        }
        Ok(kinds)
    }
}

/// Returns errors that do not end the command, since other versions or kinds may have the field.
pub(super) fn passed_over(error: PictureError) -> Result<PictureError, Fault> {
    match error {
        PictureError::NoField { .. } | PictureError::Unbounded { .. } => Ok(error),
        PictureError::NotAnExpression { .. } | PictureError::Mixed { .. } => {
            Err(Fault::usage(error.to_string()))
        }
        PictureError::TooMany { .. } => Err(Fault::undecided(error.to_string())),
        PictureError::Contradiction { .. } | PictureError::Unconfirmed { .. } => Err(Fault::internal(error)),
    }
}

/// Returns where a picture differs, and what of it is undecided.
fn told(picture: &Picture, diagram: &Diagram) -> Vec<String> {
    let mut told: Vec<String> = compare(picture, diagram).iter().map(ToString::to_string).collect();
    if told.is_empty() && !picture.is_decided() {
        let undecided = picture.undecided().map(|transition| {
            format!("{} -> {}: undecided", transition.from.as_deref().unwrap_or("[*]"), transition.to)
        });
        told.extend(undecided);
        if picture.interrupted {
            told.push("the time was over before everything was tried".to_owned());
        }
    }
    told
}
