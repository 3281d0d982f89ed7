//! Takes a request for pictures (kind, rules, options), finds the fields whose transitions rules restrict, and draws them.

use admit_policy::crd::CrdVersion;
use admit_policy::manifest::Document;
use admit_policy::schema::Schema;
use admit_policy::{GroupVersionKind, PolicySet, UserInfo};
use serde_json::Value;

use super::assembly::Assembly;
use super::explore::Search;
use super::expression::Expression;
use super::field::{FieldPath, Step};
use super::judge::Judge;
use super::picture::{Picture, PictureError};
use super::rules::{self, Rule};
use super::space::{self, Drawn, Request, Space};
use super::subject::Subject;
use super::{bases, exact, looks, moves, values};
use crate::reads::EACH;

/// The maximum number of users to try beside the ordinary one.
const MOST_USERS: usize = 8;

/// A request: which transitions of a field do the rules allow?
#[derive(Clone, Copy)]
pub struct Inquiry<'a> {
    /// Definitions, policies and params, compiled.
    pub set: &'a PolicySet,
    /// The documents that the set was made of; the texts of rules are read from them.
    pub documents: &'a [Document],
    /// The kind of the objects.
    pub kind: &'a GroupVersionKind,
    /// Objects to start from, beside samples of the schema.
    pub given: &'a [Value],
    /// Users to try if rules read the user.
    pub users: &'a [UserInfo],
    /// An expression over `self`: only objects for which it holds are considered, from creation on.
    pub only: Option<&'a str>,
    /// Reports whether time is up.
    pub over: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for Inquiry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inquiry")
            .field("kind", self.kind)
            .field("given", &self.given.len())
            .finish_non_exhaustive()
    }
}

impl Inquiry<'_> {
    /// Finds the fields with few values that some rule compares with their old value.
    #[must_use]
    pub fn fields(&self) -> Vec<FieldPath> {
        let judge = Judge::new(self.set, self.kind.clone(), false);
        let rules = self.rules(&judge);
        let schema = judge.definition().map(|(_, version)| version.schema());
        let mut found: Vec<FieldPath> = Vec::new();
        for rule in &rules {
            for pattern in rule.reads.in_both() {
                let of_schema = schema.and_then(|schema| values::at(schema, pattern));
                if judge.definition().is_some() && of_schema.is_none() {
                    continue;
                }
                for path in named(schema, std::slice::from_ref(rule), pattern) {
                    let states = values::states(of_schema, &rules, pattern, &path, &[]);
                    if space::is_drawable(&states) && !found.contains(&path) {
                        found.push(path);
                    }
                }
            }
        }
        found.sort();
        found
    }

    /// Draws the picture of a field or of an expression.
    ///
    /// # Errors
    /// If there is no such field, it has too many values, or the expression is invalid.
    pub fn picture(&self, subject: &Subject) -> Result<Picture, PictureError> {
        let drawn = match subject {
            Subject::Field(path) => Drawn::Field(path.clone()),
            Subject::State { expression, .. } => Drawn::State(Box::new(Expression::compile(expression)?)),
        };
        let only = self.only.map(Expression::compile).transpose()?;
        let in_status = match &drawn {
            Drawn::Field(path) => values::pattern(path).first().is_some_and(|first| first == "status"),
            Drawn::State(expression) => is_in_status(expression),
        };
        let judge = Judge::new(self.set, self.kind.clone(), in_status);
        let rules = self.rules(&judge);
        match &drawn {
            Drawn::Field(path) => self.check(&judge, path)?,
            Drawn::State(expression) => self.check_read(&judge, expression, subject)?,
        }
        if let Some(only) = &only {
            self.check_all(&judge, only)?;
        }
        let given: Vec<&Value> =
            self.given.iter().filter(|object| GroupVersionKind::of(object) == *self.kind).collect();
        let unique = looks::unique(&judge, &rules, &bases::sample(&judge));
        let of = |expression: &Expression| looks::atoms_of(expression, &judge, &rules, (&unique, &given));
        // If `only` cannot be reduced to atoms, all objects are considered.
        let mut atoms = only.as_ref().and_then(|only| of(only).ok()).unwrap_or_default();
        let states = if let Drawn::State(expression) = &drawn { of(expression) } else { Ok(Vec::new()) };
        let atoms = states.map(|mut all| {
            atoms.retain(|atom| !all.iter().any(|own| own.path == atom.path));
            all.extend(atoms);
            all
        });
        let request = Request { subject, drawn, only, atoms, rules: &rules, given: &given };
        let space = Space::new(&judge, request)?;
        let users = self.users(&rules);
        let (exact, limit) = match exact::decide(&judge, &space, &rules, &unique, self.over) {
            Ok(exact) => (exact, None),
            Err(limit) => (None, Some(limit)),
        };
        let search = Search {
            judge: &judge,
            space: &space,
            rules: &rules,
            users: &users,
            exact: exact.as_ref(),
            over: self.over,
        };
        let explored = search.run();
        Assembly { search, exact: exact.as_ref(), explored, limit }.picture()
    }

    fn check(&self, judge: &Judge<'_>, field: &FieldPath) -> Result<(), PictureError> {
        self.check_place(judge, &values::pattern(field), &field.to_string())
    }

    fn check_place(&self, judge: &Judge<'_>, place: &[String], told: &str) -> Result<(), PictureError> {
        let Some((_, version)) = judge.definition() else { return Ok(()) };
        let is_everywhere =
            place.first().is_some_and(|first| ["metadata", "kind", "apiVersion"].contains(&first.as_str()));
        if is_everywhere || values::at(version.schema(), place).is_some() {
            return Ok(());
        }
        Err(PictureError::NoField {
            kind: self.kind.kind.clone(),
            field: told.to_owned(),
            hint: hint(version, place),
        })
    }

    fn check_all(&self, judge: &Judge<'_>, expression: &Expression) -> Result<(), PictureError> {
        let paths = looks::read_paths(expression);
        paths.iter().try_for_each(|place| self.check_place(judge, place, &place.join(".")))
    }

    fn check_read(
        &self,
        judge: &Judge<'_>,
        expression: &Expression,
        subject: &Subject,
    ) -> Result<(), PictureError> {
        self.check_all(judge, expression)?;
        let paths = looks::read_paths(expression);
        let is_elsewhere = paths.iter().any(|place| place.first().is_some_and(|first| first != "status"));
        if judge.status && is_elsewhere {
            return Err(PictureError::Mixed { field: subject.to_string() });
        }
        Ok(())
    }

    fn rules(&self, judge: &Judge<'_>) -> Vec<Rule> {
        let mut rules =
            judge.definition().map(|(crd, version)| rules::of_definition(crd, version)).unwrap_or_default();
        let resource = self.set.documents().resource_of(self.kind);
        rules.extend(rules::of_policies(self.documents, &resource.group, &resource.resource));
        rules
    }

    /// Returns an ordinary user, and the users that rules may require.
    fn users(&self, rules: &[Rule]) -> Vec<UserInfo> {
        let nobody = UserInfo {
            username: "someone".to_owned(),
            groups: vec!["system:authenticated".to_owned()],
            ..UserInfo::default()
        };
        let mut users = vec![nobody];
        if !rules.iter().any(|rule| rule.reads.user) {
            return users;
        }
        let separators: Vec<&str> =
            rules.iter().flat_map(|rule| &rule.reads.separators).map(String::as_str).collect();
        let mut names = Vec::new();
        for document in self.documents.iter().filter(|document| is_looked_up(document)) {
            document
                .value
                .get("data")
                .into_iter()
                .for_each(|data| bases::texts_of(data, &separators, &mut names));
        }
        let by_name = names.into_iter().map(|username| UserInfo { username, ..UserInfo::default() });
        for user in self.users.iter().cloned().chain(by_name) {
            if users.len() <= MOST_USERS && !user.username.is_empty() && !users.contains(&user) {
                users.push(user);
            }
        }
        users
    }
}

fn is_in_status(expression: &Expression) -> bool {
    looks::read_paths(expression).iter().any(|place| place.first().is_some_and(|first| first == "status"))
}

fn hint(version: &CrdVersion, pattern: &[String]) -> &'static str {
    let is_list = (1..pattern.len()).any(|depth| {
        let parent = pattern.get(..depth).and_then(|parents| values::at(version.schema(), parents));
        parent.is_some_and(|parent| parent.items.is_some())
    });
    if is_list { "; entries of lists are written as conditions[type=Ready]" } else { "" }
}

fn is_looked_up(document: &Document) -> bool {
    document.value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind == "ConfigMap")
}

/// Returns the paths of a pattern; list entries are those whose keys the rules name.
fn named(schema: Option<&Schema>, rules: &[Rule], pattern: &[String]) -> Vec<FieldPath> {
    if let Some(path) = values::plain_path(pattern) {
        return vec![path];
    }
    let Some(at) = pattern.iter().position(|name| name == EACH) else { return Vec::new() };
    let (list, below) = pattern.split_at(at.saturating_add(1));
    let parents = pattern.get(..at).unwrap_or_default();
    if below.is_empty() || below.iter().any(|name| name == EACH) {
        return Vec::new();
    }
    let name = |name: &String| Step::Name(name.clone());
    let entries = moves::entries(schema, rules, list).into_iter();
    let is_key = |entry: &Step| matches!((entry, below), (Step::Entry { key, .. }, [only]) if key == only);
    entries
        .filter(|entry| !is_key(entry))
        .map(|entry| {
            FieldPath(parents.iter().map(name).chain([entry]).chain(below.iter().map(name)).collect())
        })
        .collect()
}
