//! Reads the rows of one file, and the requests that must be sent before them.

use std::collections::{BTreeMap, BTreeSet};

use admit_apimachinery::yaml;
use serde_json::{Value, json};

use super::text;
use crate::corpus::{Folder, RowFile};

/// Rows that one server is asked, in their order.
pub(super) struct Group<'f> {
    /// What is sent first.
    pub(super) before: Vec<Value>,
    /// With their places in the file.
    pub(super) rows: Vec<(usize, &'f Value)>,
    /// What takes the place of a definition before the first row that is `strict`.
    pub(super) strict: Option<&'f Value>,
    /// Whether each PUT was sent with the version that its object had, which rows do not say.
    pub(super) puts_carry_version: bool,
    /// Whether rows are about HTTP itself: their answers are recorded in forms of their own.
    pub(super) wire: bool,
}

pub(super) struct Rows<'f> {
    rows: &'f [Value],
    before: Vec<Value>,
    /// By what `crd` of a row says: the `lax` definition, and the `strict` one that takes its place.
    definitions: BTreeMap<String, &'f Value>,
    /// By the number that ids of rows begin with: creations of the policies that are in force for them.
    policies: BTreeMap<String, Vec<Value>>,
    /// Whether rows share a server whose ids begin alike, rather than all of them.
    by_beginning: bool,
    puts_carry_version: bool,
    wire: bool,
}

/// The test that asks `admit serve` through a server as its webhook.
const SERVED: &str = "cargo test -p admit --test product -- serve::native::recorded";

/// A server takes a moment to come up as recorded: rows that are asked of one.
const ROWS_OF_A_SERVER: usize = 1_000;

impl<'f> Rows<'f> {
    /// None where the file has no rows, or rows of a form that is not run; the latter is said.
    pub(super) fn of(folder: &'f Folder, file: &'f RowFile) -> Option<Self> {
        let first = file.rows.first();
        if !first.is_some_and(|row| ["id", "request", "response"].iter().all(|key| row.get(key).is_some())) {
            return None;
        }
        let mut before = Vec::new();
        match file.name.as_str() {
            "crd-registration" => {}
            "builtin-create" | "protobuf" => before.extend(["t", "t2"].map(namespace)),
            "builtin-update" | "builtin-status" => {
                before.extend(["t", "t2"].map(namespace));
                before.extend(olds(folder));
            }
            "crd-objects" => before.push(namespace("crdns")),
            "ssa" => before.extend(folder.rows_of("ssa.setup").cloned()),
            "vap-policies" | "vap" => before.extend(folder.rows_of("vap.setup").cloned()),
            "http-fresh" => {
                before.extend(folder.rows_of("http-fresh.setup").cloned());
                // Definitions were there from an earlier recording.
                let earlier = folder.rows_of("vap.setup");
                before.extend(earlier.filter(|row| text(row, "path") == DEFINITIONS).cloned());
                before.extend(manifests(folder));
            }
            "features" => {}
            "serve-webhook" => {
                super::super::run_elsewhere(&folder.name, &file.name, SERVED);
                return None;
            }
            other => {
                super::super::not_run(&folder.name, other);
                return None;
            }
        }
        let crds = format!("{}.crds", file.name);
        let definitions = folder.rows_of(&crds);
        let definitions = definitions.map(|row| (text(row, "crd").to_owned(), row)).collect();
        let policies = if file.name == "vap" { policies(folder) } else { BTreeMap::new() };
        let by_beginning = matches!(file.name.as_str(), "vap-policies" | "vap");
        let puts_carry_version = matches!(file.name.as_str(), "ssa" | "features");
        let wire = matches!(file.name.as_str(), "http-fresh" | "features");
        Some(Self { rows: &file.rows, before, definitions, policies, by_beginning, puts_carry_version, wire })
    }

    /// All rows, or those whose id contains the text.
    pub(super) fn groups(&self, only: Option<&str>) -> Vec<Group<'f>> {
        let rows: Vec<(usize, &Value)> = self.rows.iter().enumerate().collect();
        let asked = |row: &Value| only.is_none_or(|only| text(row, "id").contains(only));
        if !self.definitions.is_empty() {
            return self.by_definition(&rows, only.is_some(), &asked);
        }
        let group = |rows: Vec<(usize, &'f Value)>| Group {
            before: self.before.clone(),
            rows,
            strict: None,
            puts_carry_version: self.puts_carry_version,
            wire: self.wire,
        };
        if self.by_beginning {
            let mut groups: BTreeMap<&str, Vec<(usize, &'f Value)>> = BTreeMap::new();
            for (at, row) in rows {
                groups.entry(beginning(row)).or_default().push((at, row));
            }
            let with_policies = |(beginning, rows): (&str, Vec<(usize, &'f Value)>)| {
                // Objects first: those that rows change were stored before a policy could refuse them.
                let olds = creations(rows.iter().map(|(_, row)| *row), "");
                let policies = self.policies.get(beginning).map(Vec::as_slice).unwrap_or_default();
                let (deletions, others): (Vec<_>, Vec<_>) =
                    rows.into_iter().partition(|(_, row)| row["request"]["method"] == "DELETE");
                // What is deleted has other labels than what is changed: a server for each.
                let labelled = with_labels(&olds, deletions.iter().map(|(_, row)| *row));
                [(others, olds), (deletions, labelled)].map(|(rows, olds)| {
                    let mut group = group(rows.into_iter().filter(|(_, row)| asked(row)).collect());
                    group.before.extend(olds.into_iter().chain(policies.iter().cloned()));
                    group
                })
            };
            return groups
                .into_iter()
                .flat_map(with_policies)
                .filter(|group| !group.rows.is_empty())
                .collect();
        }
        if !self.wire && rows.iter().all(|(_, row)| changes_nothing(row)) {
            let rows: Vec<_> = rows.into_iter().filter(|(_, row)| asked(row)).collect();
            return rows.chunks(ROWS_OF_A_SERVER).map(|rows| group(rows.to_vec())).collect();
        }
        // Those before a row make what it meets.
        let last = rows.iter().rposition(|(_, row)| asked(row));
        last.map(|last| group(rows.into_iter().take(last + 1).collect())).into_iter().collect()
    }

    fn by_definition(
        &self,
        rows: &[(usize, &'f Value)],
        some: bool,
        asked: &dyn Fn(&Value) -> bool,
    ) -> Vec<Group<'f>> {
        let mut groups: BTreeMap<&str, Vec<(usize, &'f Value)>> = BTreeMap::new();
        for (at, row) in rows {
            groups.entry(text(row, "crd")).or_default().push((*at, row));
        }
        let group = |(crd, mut rows): (&str, Vec<(usize, &'f Value)>)| {
            if some && !rows.iter().any(|(_, row)| asked(row)) {
                return None;
            }
            let definition = self.definitions.get(crd)?;
            rows.sort_by_key(|(at, row)| (row["schema"] != "lax", *at));
            let mut before = self.before.clone();
            before.push(create(DEFINITIONS, &definition["lax"]));
            Some(Group {
                before,
                rows,
                strict: Some(&definition["strict"]),
                puts_carry_version: false,
                wire: false,
            })
        };
        groups.into_iter().filter_map(group).collect()
    }
}

/// Where definitions are created.
pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn changes_nothing(row: &Value) -> bool {
    text(&row["request"], "path").contains("dryRun=All")
}

fn namespace(name: &str) -> Value {
    create(
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
    )
}

fn create(path: &str, object: &Value) -> Value {
    json!({"method": "POST", "path": path, "body": object})
}

/// The first part of a row's id.
fn beginning(row: &Value) -> &str {
    text(row, "id").split('/').next().unwrap_or_default()
}

/// Creations of the objects that rows change.
fn olds(folder: &Folder) -> Vec<Value> {
    let rows = folder.rows_of("builtin-update").chain(folder.rows_of("builtin-status"));
    addresses_first(creations(rows, "?fieldManager=creator"))
}

/// Creations of all manifests of built-in kinds: those that rows change as these say, for whoever read the file for the
/// recording saw words where Go sees truth values.
fn manifests(folder: &Folder) -> Vec<Value> {
    const FILE: &str = "builtin.manifests.yaml.gz";
    let name = |object: &Value| text(&object["metadata"], "name").to_owned();
    let mut creations = olds(folder);
    let documents = folder.text(FILE).ok().and_then(|text| yaml::parse(&text).ok()).unwrap_or_default();
    for object in documents.into_iter().map(|document| document.value) {
        let row = format!("{}/{}/{}/", text(&object, "apiVersion"), text(&object, "kind"), name(&object));
        let row = folder.rows_of("builtin-create").find(|other| text(other, "id").starts_with(&row));
        let path = row.and_then(|row| text(&row["request"], "path").split('?').next());
        let Some(path) = path.map(|path| format!("{path}?fieldManager=creator")) else { continue };
        if !creations.iter().any(|known| known["path"] == path && name(&known["body"]) == name(&object)) {
            creations.push(create(&path, &object));
        }
    }
    addresses_first(creations)
}

/// With the addresses first that objects claim by name: a Service that claims none is given any that is free, by chance
/// one of these.
fn addresses_first(mut creations: Vec<Value>) -> Vec<Value> {
    creations.sort_by_key(|creation| creation["body"]["kind"] != "IPAddress");
    creations
}

/// Creations of the objects that rows change, each once.
fn creations<'f>(rows: impl Iterator<Item = &'f Value>, query: &str) -> Vec<Value> {
    let mut known = BTreeSet::new();
    let mut creations = Vec::new();
    for row in rows.filter(|row| row["old"]["metadata"].is_object()) {
        let Some(collection) = collection(row) else { continue };
        if known.insert((collection.clone(), text(&row["old"]["metadata"], "name"))) {
            creations.push(create(&format!("{collection}{query}"), &row["old"]));
        }
    }
    creations
}

/// Where the row's old object was created: in its own version, whichever the row asks in.
fn collection(row: &Value) -> Option<String> {
    let path = text(&row["request"], "path").split('?').next()?;
    let object = SUBRESOURCES.iter().find_map(|name| path.strip_suffix(name)).unwrap_or(path);
    let (asked, _) = object.rsplit_once('/')?;
    let version = text(&row["old"], "apiVersion");
    // /api/VERSION/…, /apis/GROUP/VERSION/…
    let (root, parts) = if version.contains('/') { ("apis", 4) } else { ("api", 3) };
    let below: Vec<&str> = asked.split('/').skip(parts).collect();
    Some(format!("/{root}/{version}/{}", below.join("/")))
}

/// Creations of objects, with the labels that rows say these had when they were deleted.
fn with_labels<'f>(creations: &[Value], deletions: impl Iterator<Item = &'f Value>) -> Vec<Value> {
    /// Where an object stands, whichever its version: the namespace and what follows.
    fn place(path: &str) -> &str {
        path.split_once("/namespaces/").map_or(path, |(_, place)| place)
    }
    let mut creations = creations.to_vec();
    for row in deletions {
        let path = text(&row["request"], "path").split('?').next().unwrap_or_default();
        let created = creations.iter_mut().find(|creation| {
            let object =
                format!("{}/{}", text(creation, "path"), text(&creation["body"]["metadata"], "name"));
            place(&object) == place(path)
        });
        if let Some(creation) = created {
            creation["body"]["metadata"]["labels"] = row["old"].clone();
        }
    }
    creations
}

const SUBRESOURCES: [&str; 2] = ["/status", "/scale"];

/// Creations of the policies and bindings that are in force, by the number of their rows.
fn policies(folder: &Folder) -> BTreeMap<String, Vec<Value>> {
    const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
    let mut policies: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for row in folder.rows_of("vap.policies").filter(|row| row["inForce"] == true) {
        let seed = policies.entry(row["seed"].to_string()).or_default();
        seed.push(create(&format!("{GROUP}/validatingadmissionpolicies"), &row["policy"]));
        let bindings = row["bindings"].as_array().into_iter().flatten();
        seed.extend(
            bindings.map(|binding| create(&format!("{GROUP}/validatingadmissionpolicybindings"), binding)),
        );
    }
    policies
}
