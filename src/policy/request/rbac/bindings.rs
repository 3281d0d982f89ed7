//! Finds the role bindings of a user by an index, so that other users' bindings cost nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use admit_apimachinery::pointer::{items, text};
use serde_json::Value;

use crate::request::UserInfo;

/// The bindings, and where each subject is found in them.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    by_name: BTreeMap<Place, Arc<Binding>>,
    by_subject: HashMap<Who, BTreeMap<Place, usize>>,
}

/// Namespace, which is empty for ClusterRoleBindings, and name: those of the cluster come first.
type Place = (String, String);

/// The content of a binding.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) namespace: Box<str>,
    name: Box<str>,
    pub(super) role_kind: Box<str>,
    pub(super) role: Box<str>,
    subjects: Box<[Subject]>,
}

#[derive(Debug)]
struct Subject {
    kind: Box<str>,
    namespace: Box<str>,
    name: Box<str>,
}

/// How a subject identifies users. A ServiceAccount is identified by its user name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Who {
    User(String),
    Group(String),
}

/// A binding that holds for a user, and the first of its subjects that is this user.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound<'b> {
    pub(super) binding: &'b Binding,
    subject: usize,
}

impl Bindings {
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn insert(&mut self, namespace: &str, name: &str, binding: Binding) {
        self.remove(namespace, name);
        let place = (namespace.to_owned(), name.to_owned());
        for (number, subject) in binding.subjects.iter().enumerate() {
            if let Some(who) = subject.who() {
                self.by_subject.entry(who).or_default().entry(place.clone()).or_insert(number);
            }
        }
        self.by_name.insert(place, Arc::new(binding));
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) {
        let place = (namespace.to_owned(), name.to_owned());
        let Some(binding) = self.by_name.remove(&place) else { return };
        for who in binding.subjects.iter().filter_map(Subject::who) {
            if let Some(places) = self.by_subject.get_mut(&who) {
                places.remove(&place);
                if places.is_empty() {
                    self.by_subject.remove(&who);
                }
            }
        }
    }

    /// The bindings that give `user` something in `namespace`, those of the whole cluster first, by name.
    pub(super) fn of(&self, user: &UserInfo, namespace: &str) -> Vec<Bound<'_>> {
        let mut found = BTreeMap::new();
        for places in self.places(user) {
            let mut note = |at: &str| {
                let from = (at.to_owned(), String::new());
                for (place, number) in places.range(from..).take_while(|((of, _), _)| of == at) {
                    let first = found.entry(place).or_insert(*number);
                    *first = (*first).min(*number);
                }
            };
            note("");
            if !namespace.is_empty() {
                note(namespace);
            }
        }
        let bound = |(place, subject)| Some(Bound { binding: self.by_name.get(place)?, subject });
        found.into_iter().filter_map(bound).collect()
    }

    /// All bindings that give `user` something anywhere, some of them more than once.
    pub(super) fn anywhere(&self, user: &UserInfo) -> Vec<Bound<'_>> {
        let bound = |(place, subject): (_, &usize)| {
            Some(Bound { binding: self.by_name.get(place)?, subject: *subject })
        };
        self.places(user).flat_map(|places| places.iter().filter_map(bound)).collect()
    }

    fn places(&self, user: &UserInfo) -> impl Iterator<Item = &BTreeMap<Place, usize>> {
        let groups = user.groups.iter().map(|group| Who::Group(group.clone()));
        let whos = groups.chain([Who::User(user.username.clone())]);
        whos.filter_map(|who| self.by_subject.get(&who))
    }
}

impl Binding {
    /// Reads a binding of a namespace, which is empty for those of the whole cluster.
    pub(super) fn read(object: &Value, namespace: &str) -> Self {
        let subject = |subject: &Value| {
            let (kind, own) = (text(subject, "/kind"), text(subject, "/namespace"));
            // A RoleBinding's account without a namespace is of the binding's own.
            let own = if own.is_empty() && kind == "ServiceAccount" { namespace } else { own };
            Subject { kind: kind.into(), namespace: own.into(), name: text(subject, "/name").into() }
        };
        Self {
            namespace: namespace.into(),
            name: text(object, "/metadata/name").into(),
            role_kind: text(object, "/roleRef/kind").into(),
            role: text(object, "/roleRef/name").into(),
            subjects: items(object, "/subjects").iter().map(subject).collect(),
        }
    }
}

impl Subject {
    /// Returns None for an invalid subject.
    fn who(&self) -> Option<Who> {
        let Self { kind, namespace, name } = self;
        match &**kind {
            "User" => Some(Who::User(name.to_string())),
            "Group" => Some(Who::Group(name.to_string())),
            "ServiceAccount" => Some(Who::User(format!("system:serviceaccount:{namespace}:{name}"))),
            _ => None,
        }
    }
}

impl Bound<'_> {
    /// Formats it as the cluster's authorizer does.
    pub(super) fn reason(&self) -> String {
        let Binding { namespace, name, role_kind, role, subjects } = self.binding;
        let (kind, shown) = match &**namespace {
            "" => ("ClusterRoleBinding", name.to_string()),
            namespace => ("RoleBinding", format!("{name}/{namespace}")),
        };
        let subject = subjects.get(self.subject).map(|Subject { kind, namespace, name }| match &**kind {
            "ServiceAccount" => format!("{kind} \"{name}/{namespace}\""),
            _ => format!("{kind} \"{name}\""),
        });
        let subject = subject.unwrap_or_default();
        format!("RBAC: allowed by {kind} \"{shown}\" of {role_kind} \"{role}\" to {subject}")
    }
}
