//! Collects the requests that attacks start from: cases of suites, and creations of objects.

use std::path::PathBuf;

use admit_analysis::attack::{Ask, Family};
use admit_apiserver::BuiltinKinds;
use admit_policy::manifest::Document;
use admit_policy::suite::{self, Accepted, Suite};
use admit_policy::{Builtins as _, Documents, GroupVersionKind, GroupVersionResource, Scope};
use serde_json::{Value, json};

use crate::cli::load;
use crate::cli::process::Fault;

/// The requests and the accepted findings that suites and files give.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) asks: Vec<Ask>,
    pub(super) accepted: Vec<Accepted>,
}

impl Given {
    /// Reads the suites among `documents`, those at `suites`, and the objects at `filenames`.
    ///
    /// # Errors
    /// When a file cannot be read, or is not a suite.
    pub(super) fn read(
        documents: &[Document],
        suites: &[PathBuf],
        filenames: &[PathBuf],
        known: &Documents,
    ) -> Result<Self, Fault> {
        let mut given = Self::default();
        for document in documents.iter().filter(|document| Suite::is(&document.value)) {
            given.suite(document, known)?;
        }
        let mut named = Vec::new();
        let mut take = |document: Document| {
            named.push(document);
            Ok(())
        };
        load::each_document(suites, &mut take)?.tell();
        for document in &named {
            if !Suite::is(&document.value) {
                return Err(Fault::usage(format!("{}:{}: is no suite", document.file, document.here().line)));
            }
            given.suite(document, known)?;
        }
        let mut objects = Vec::new();
        let mut take = |document: Document| {
            objects.push(document.value);
            Ok(())
        };
        load::each_document(filenames, &mut take)?.tell();
        given.asks.extend(objects.into_iter().map(|object| creation(object, known)));
        Ok(given)
    }

    fn suite(&mut self, document: &Document, known: &Documents) -> Result<(), Fault> {
        let suite = Suite::decode_knowing(&document.value, Some(&BuiltinKinds));
        let suite = suite.map_err(|error| {
            let at = document.position(error.path());
            Fault::usage(format!("{}:{}: {error}", document.file, at.line))
        })?;
        for (index, accepted) in suite.accepted.iter().enumerate() {
            if let Err(unknown) = accepted.family.parse::<Family>() {
                let field = format!("accepted[{index}].family");
                let line = document.position(&field).line;
                return Err(Fault::usage(format!("{}:{line}: {field}: {unknown}", document.file)));
            }
        }
        self.accepted.extend(suite.accepted);
        for (index, case) in suite.cases.iter().enumerate() {
            let request = suite::request(case, known);
            let answers = [format!("/cases/{index}/authorizer"), "/defaults/authorizer".to_owned()];
            let answers = answers.iter().find_map(|pointer| document.value.pointer(pointer)).cloned();
            let is_namespaced = is_namespaced(&request.kind, known);
            self.asks.push(Ask::of(&request, is_namespaced, &case.existing, answers));
        }
        Ok(())
    }
}

fn creation(mut object: Value, known: &Documents) -> Ask {
    let kind = GroupVersionKind::of(&object);
    let is_namespaced = is_namespaced(&kind, known);
    if let (Some(metadata), true) = (object.get_mut("metadata").and_then(Value::as_object_mut), is_namespaced)
    {
        metadata.entry("namespace").or_insert_with(|| json!("default"));
    }
    Ask::creation(object, resource(&kind, known))
}

fn resource(kind: &GroupVersionKind, known: &Documents) -> GroupVersionResource {
    match BuiltinKinds.catalogue().and_then(|catalogue| catalogue.kind(kind)) {
        Some(served) => GroupVersionResource::new(&*kind.group, &*kind.version, served.plural.as_str()),
        None => known.resource_of(kind),
    }
}

fn is_namespaced(kind: &GroupVersionKind, known: &Documents) -> bool {
    let served = BuiltinKinds.catalogue().and_then(|catalogue| catalogue.kind(kind));
    served.map_or_else(|| known.scope_of(kind) == Scope::Namespaced, |served| served.namespaced)
}
