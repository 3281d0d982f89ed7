//! Reads the inputs of `check` and `explain` (new objects, old objects, policies), and submits the objects to the policies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use admit_apimachinery::pointer;
use admit_apiserver::{BuiltinKinds, OfflinePlugins};
use admit_policy::apply::{self, Identity, Options, Pair, PairError, Pairing, Rehearsal};
use admit_policy::manifest::{Document, Position};
use admit_policy::{GroupVersionKind, LoadOptions, PolicySet};
use clap::Args;
use serde_json::Value;

use super::asked::AskedArgs;
use super::git;
use super::held::{Held, Store};
use super::live::{self, Live};
use crate::cli::offline_plugins::OfflinePluginArgs;
use crate::cli::process::{self, Fault};
use crate::cli::progress::Progress;
use crate::cli::{Exit, conversion, load};

/// The arguments that name manifests and what they are applied to.
#[derive(Debug, Args)]
pub(in crate::cli) struct InputArgs {
    /// Manifests to apply: files, folders (also `./...`), `-` for standard input
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(in crate::cli) filenames: Vec<PathBuf>,

    /// Old objects, as stored before the request: files, folders, or `-` for standard input
    #[arg(long, value_name = "PATH")]
    old: Vec<PathBuf>,

    /// Read the old objects from the same paths at this git revision
    #[arg(long, value_name = "REV", conflicts_with = "old")]
    old_git: Option<String>,

    /// Policies, bindings, CRDs and params: files or folders
    #[arg(long, value_name = "PATH")]
    policies: Vec<PathBuf>,

    #[command(flatten)]
    asked: AskedArgs,

    /// Accept objects of kinds that no policy uses in the files of --policies
    #[arg(long)]
    ignore_unknown: bool,

    #[command(flatten)]
    pub(in crate::cli) plugins: OfflinePluginArgs,

    /// Whether the objects exist already, so that admission plugins are not called for them.
    #[arg(skip)]
    are_there: bool,
}

/// The inputs, read and parsed.
#[derive(Debug)]
pub(in crate::cli) struct Inputs {
    pub(in crate::cli) set: PolicySet,
    /// Old objects that no new one replaces.
    pub(in crate::cli) left: Vec<Identity>,
    new: Vec<Held>,
    old: Vec<Held>,
    /// The index of the old object that each new one replaces.
    replaced: Vec<Option<usize>>,
    /// The objects that are looked up for decisions about others.
    existing: Vec<Arc<Value>>,
    namespace: String,
    options: Options,
    /// What could not be read of folders or of a cluster, which was reported.
    pub(in crate::cli) unread: Vec<String>,
    /// The documents of policies and definitions.
    pub(in crate::cli) policies: Vec<Document>,
}

impl Inputs {
    /// Creates the rehearsal that decides about the pairs.
    pub(in crate::cli) fn rehearsal(&self) -> Rehearsal<'_> {
        Rehearsal::new(&self.set, self.existing.iter().cloned(), self.options.clone()).knowing(&BuiltinKinds)
    }

    /// Returns the number of new objects.
    pub(in crate::cli) fn count(&self) -> usize {
        self.new.len()
    }

    /// Returns the new objects in order, each with the old one that it replaces.
    pub(in crate::cli) fn pairs(&self) -> impl Iterator<Item = Pair> {
        let known = self.set.documents();
        self.new.iter().zip(&self.replaced).enumerate().filter_map(move |(position, (new, replaced))| {
            let new = new.object();
            // An object without an identity was reported before, and is not decided.
            let identity = Identity::of(&new, known, &self.namespace).ok()?;
            let old = replaced.and_then(|old| self.old.get(old)).map(Held::object);
            Some(Pair::new(identity, position, &new, old.as_ref(), known))
        })
    }

    /// Returns the file and the line of the new object of a pair.
    pub(in crate::cli) fn place(&self, pair: &Pair) -> (String, Position) {
        let held = self.new.get(pair.position);
        held.map(|held| (held.file.to_string(), held.position)).unwrap_or_default()
    }
}

impl InputArgs {
    /// Creates arguments for objects that exist already, decided by `policies` as `asked` says.
    pub(in crate::cli) fn standing(
        filenames: Vec<PathBuf>,
        policies: Vec<PathBuf>,
        asked: AskedArgs,
        ignore_unknown: bool,
    ) -> Self {
        Self {
            filenames,
            old: Vec::new(),
            old_git: None,
            policies,
            asked,
            ignore_unknown,
            plugins: OfflinePluginArgs::default(),
            are_there: true,
        }
    }

    /// Returns the paths that may contain definitions and policies, and those of old objects.
    pub(super) fn definitions(&self) -> Vec<PathBuf> {
        [&self.policies, &self.filenames, &self.old].into_iter().flatten().cloned().collect()
    }

    /// Reads the objects of manifests.
    pub(in crate::cli) fn read(&self) -> Result<Inputs, Fault> {
        let paths =
            [&self.filenames, &self.old, &self.policies].into_iter().flatten().chain(&self.asked.authorizer);
        if paths.filter(|path| load::is_stdin(path)).count() > 1 {
            return Err(Fault::usage("standard input can be read only once"));
        }
        let policies = load::policy_documents(&self.policies)?;
        let (mut new, mut old) = (Store::new(), Store::new());
        let progress = Progress::of(None, "objects read:");
        let mut misnamed = Vec::new();
        let (mut known, mut unknown) = (BTreeSet::new(), Vec::new());
        let mut take = |document: Document| {
            progress.step();
            let mistake = apply::misnamed(&document.value);
            misnamed.extend(mistake.map(|mistake| document.mistake(mistake.to_string())));
            let GroupVersionKind { group, kind, .. } = GroupVersionKind::of(&document.value);
            let version = document.value.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            let is_named = !kind.is_empty() && !version.is_empty();
            if let Some(why) = BuiltinKinds.unknown(version, &kind).filter(|_| is_named)
                && known.insert((group.clone(), kind.clone()))
            {
                unknown.push(((group, kind), document.mistake(why).to_string()));
            }
            new.add(document)
        };
        let beside = load::each_document(&self.filenames, &mut take).map_err(unreadable)?;
        if !misnamed.is_empty() {
            return Err(unreadable(load::not_compiled(&misnamed)));
        }
        let beside_old = self.read_old(&mut old, &progress).map_err(unreadable)?;
        drop(progress);
        beside.tell();
        beside_old.tell();
        if new.objects.is_empty() {
            let paths: Vec<String> =
                self.filenames.iter().map(|path| format!("`{}`", path.display())).collect();
            return Err(Fault::usage(format!("there are no manifests in {}", paths.join(", "))));
        }
        let unread = beside.unread.into_iter().chain(beside_old.unread).collect();
        let plugins = if self.are_there { None } else { Some(self.plugins.chosen()?) };
        let inputs = self.inputs(&policies, (new, old, Store::new()), plugins)?;
        let definitions = inputs.set.documents().crds();
        let is_defined = |(group, kind): &(String, String)| {
            let mut all = definitions.iter().map(|definition| definition.definition());
            all.any(|of| of.group == *group && of.names.kind == *kind)
        };
        unknown.iter().filter(|(kind, _)| !is_defined(kind)).for_each(|(_, why)| process::warn(why));
        Ok(Inputs { unread, ..inputs })
    }

    /// Reads the objects of the cluster of `kubeconfig` that the policies match.
    pub(super) fn read_live(
        &self,
        kubeconfig: &Path,
        context: Option<&str>,
        exceptions: bool,
    ) -> Result<Inputs, Fault> {
        if let Some(flag) = self.asked.must_replace()? {
            return Err(Fault::usage(format!(
                "{flag} needs manifests (-f): what is in a cluster is no change of itself"
            )));
        }
        self.read_stored(|set| live::read(kubeconfig, context, set, exceptions))
    }

    /// Takes from `read` the stored objects that the policies match.
    pub(in crate::cli) fn read_stored(
        &self,
        read: impl FnOnce(&PolicySet) -> Result<Live, Fault>,
    ) -> Result<Inputs, Fault> {
        let policies = load::policy_documents(&self.policies)?;
        let set = self.set(&policies, &[])?;
        let Live { mut objects, beside, definitions, exceptions, unread } = read(&set)?;
        objects.configuration = definitions;
        unread.iter().for_each(|unread| process::warn(unread));
        let inputs = self.inputs(&policies, (objects, Store::new(), beside), None)?;
        Ok(Inputs { unread, set: inputs.set.excepting(exceptions), ..inputs })
    }

    fn inputs(
        &self,
        policies: &[Document],
        (mut new, mut old, mut beside): (Store, Store, Store),
        plugins: Option<OfflinePlugins>,
    ) -> Result<Inputs, Fault> {
        let mut set = self.set(policies, &new.configuration)?;
        if let Some(plugins) = &plugins {
            set = set.plugging(Arc::new(plugins.clone()));
        }
        let Paired { replaced, left, mut existing } = self.paired(&mut new, &mut old, &set)?;
        let Store { objects, room, .. } = &mut beside;
        for held in objects.iter() {
            let object = held.object();
            room.unpacked(held, &object)?;
            existing.push(object);
        }
        let (new, old) = (new.objects, old.objects);
        if let Some(plugins) = plugins {
            let known =
                policies.iter().map(|document| &document.value).filter(|it| OfflinePlugins::keeps(it));
            let known = known.cloned().map(Arc::new);
            let found = existing.iter().filter(|object| OfflinePlugins::keeps(object)).cloned();
            set = self.charging(set, &plugins, known.chain(found).collect(), &old);
        }
        load::tell_ended(&set);
        let (namespace, options) = (self.asked.namespace.clone(), self.asked.options()?);
        let (policies, unread) = (policies.to_vec(), Vec::new());
        Ok(Inputs { left, new, old, replaced, existing, namespace, options, set, unread, policies })
    }

    /// Charges the quotas among the existing objects with one new object after the other.
    fn charging(
        &self,
        set: PolicySet,
        plugins: &OfflinePlugins,
        given: Vec<Arc<Value>>,
        old: &[Held],
    ) -> PolicySet {
        // The last quota of a name counts.
        let mut quotas: BTreeMap<(String, String), Arc<Value>> = BTreeMap::new();
        for quota in given {
            let text = |pointer: &str| pointer::text(&quota, pointer).to_owned();
            let key = (text("/metadata/namespace"), text("/metadata/name"));
            quotas.insert(key, quota);
        }
        if quotas.is_empty() {
            return set;
        }
        let quotas: Vec<Arc<Value>> = quotas.into_values().collect();
        let before = old.iter().map(|held| self.placed(held.object(), &set));
        let charging = plugins.charging(&quotas, before);
        set.plugging(Arc::new(charging))
    }

    /// Sets the namespace that the object goes to.
    fn placed(&self, object: Arc<Value>, set: &PolicySet) -> Arc<Value> {
        let namespace = Identity::of(&object, set.documents(), &self.asked.namespace).map(|of| of.namespace);
        let Some(namespace) = namespace.ok().filter(|namespace| !namespace.is_empty()) else { return object };
        let mut object = object;
        if pointer::text(&object, "/metadata/namespace").is_empty()
            && let Some(metadata) =
                Arc::make_mut(&mut object).get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        object
    }

    /// Compiles what is in force: the policies, and those of the documents of `configuration` that count.
    fn set(&self, policies: &[Document], configuration: &[Document]) -> Result<PolicySet, Fault> {
        let of_manifests = apply::in_force(configuration, policies);
        let load_options = LoadOptions { ignore_unknown: self.ignore_unknown };
        let set = PolicySet::load_with(policies.iter().chain(of_manifests), load_options)
            .map_err(|errors| load::with_hint(load::not_compiled(&errors)))?;
        Ok(load::as_of_now(set).converting(conversion::offline))
    }

    /// Finds the old object of each new one.
    fn paired(&self, new: &mut Store, old: &mut Store, set: &PolicySet) -> Result<Paired, Fault> {
        let (Store { objects: new, room, .. }, Store { objects: old, room: room_of_old, .. }) = (new, old);
        let mut pairing = Pairing::new(set.documents(), &self.asked.namespace);
        let mut existing = Vec::new();
        for (position, held) in old.iter().enumerate() {
            let object = held.object();
            pairing.add_old(position, &object);
            if set.looks_up(&GroupVersionKind::of(&object)) {
                room_of_old.unpacked(held, &object)?;
                existing.push(self.placed(object, set));
            }
        }
        let must_replace = self.asked.must_replace()?;
        let (mut replaced, mut wrong, mut missing) = (Vec::with_capacity(new.len()), Vec::new(), Vec::new());
        for (position, held) in new.iter().enumerate() {
            let object = held.object();
            match pairing.add_new(position, &object) {
                Ok((identity, old)) => {
                    if let (Some(flag), None) = (&must_replace, old) {
                        let remedy = "--old or --old-git tells of it";
                        missing.push(held.mistake(format!(
                            "{identity}: {flag} needs the object that is there before; {remedy}"
                        )));
                    }
                    replaced.push(old);
                }
                Err(error) => wrong.push(held.mistake(format!("{error}{}", earlier(&error, new)))),
            }
            if set.looks_up(&GroupVersionKind::of(&object)) {
                room.unpacked(held, &object)?;
                existing.push(self.placed(object, set));
            }
        }
        let mistakes = if wrong.is_empty() { missing } else { wrong };
        if !mistakes.is_empty() {
            return Err(unreadable(load::not_compiled(&mistakes)));
        }
        let identity = |position: usize| {
            Identity::of(&old.get(position)?.object(), set.documents(), &self.asked.namespace).ok()
        };
        let left = pairing.left().into_iter().filter_map(identity).collect();
        Ok(Paired { replaced, left, existing })
    }

    fn read_old(&self, old: &mut Store, progress: &Progress) -> Result<load::Beside, Fault> {
        let mut take = |document| {
            progress.step();
            old.add(document)
        };
        match &self.old_git {
            Some(revision) => {
                git::each_document(revision, &self.filenames, &mut take).map(|()| load::Beside::default())
            }
            None => load::each_document(&self.old, &mut take),
        }
    }
}

/// The result of pairing new objects with old ones.
struct Paired {
    replaced: Vec<Option<usize>>,
    left: Vec<Identity>,
    existing: Vec<Arc<Value>>,
}

/// Returns the position of the earlier object if a later one has the same name.
fn earlier(error: &PairError, new: &[Held]) -> String {
    let PairError::Duplicate { first, .. } = error else { return String::new() };
    let first = new.get(*first);
    first.map(|first| format!(", at {}:{}", first.file, first.position.line)).unwrap_or_default()
}

/// Makes an unreadable manifest a usage error: manifests are input, unlike policies.
fn unreadable(fault: Fault) -> Fault {
    Fault { exit: Exit::Usage, ..fault }
}
