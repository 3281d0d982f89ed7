//! What is told wherever expressions stand, by the rows of `data/places.yaml`.

use admit_apimachinery::yaml::parse_values;
use admit_language::{Encoding, Place, Workspace};
use admit_policy::{Documents, LoadOptions};
use serde_json::Value;

use crate::support::{behind, shown};

const SHOP: &str = "spec:
  type: object
  properties:
    size: {type: integer, description: How large it is.}
    phase: {type: string, enum: [Open, Closed]}
";
const FILE: &str = "places.yaml";
const CURSOR: char = '¦';

struct Row<'r> {
    row: &'r Value,
    text: String,
    at: Place,
    workspace: Workspace,
}

impl<'r> Row<'r> {
    fn of(row: &'r Value) -> Self {
        let written = row["text"].as_str().unwrap_or_else(|| panic!("{row}: a text"));
        let (before, after) = written.split_once(CURSOR).unwrap_or_else(|| panic!("{row}: a cursor"));
        let text = format!("{before}{after}");
        let mut workspace =
            Workspace::new(Box::new(Documents::default()), LoadOptions::default(), Encoding::Utf16);
        workspace.open(FILE, text.clone());
        if !row["beside"].is_null() {
            workspace.open("shop.yaml", testing::shops(SHOP));
        }
        Self { row, text, at: behind(written, before), workspace }
    }

    fn texts(&self, key: &str) -> Vec<&'r str> {
        self.row[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn mistakes(&mut self) {
        let found = self.workspace.check(FILE);
        let Some(expected) = self.row["mistakes"].as_array() else { return };
        let about = found.iter().filter(|found| found.code == "refused" || found.code == "suite");
        let about: Vec<Value> =
            about.map(|found| serde_json::json!([found.code, shown(&self.text, &found.range)])).collect();
        assert_eq!(&about, expected, "{}: {found:#?}", self.row["name"]);
    }

    fn fixed(&mut self) {
        let fixes = self.workspace.fixes(FILE, self.at..self.at);
        let Some(expected) = self.row["fixed"].as_str() else { return };
        assert_eq!(fixes.len(), 1, "{}: {fixes:?}", self.row["name"]);
        let edit = &fixes[0].edit;
        self.workspace.edit(FILE, edit.range.clone(), &edit.text);
        let line =
            self.workspace.text(FILE).and_then(|text| text.lines().nth(edit.range.start.line as usize));
        assert_eq!(line.map(str::trim), Some(expected), "{}", self.row["name"]);
        assert_eq!(self.workspace.fixes(FILE, self.at..self.at), [], "it was changed since");
    }

    fn hover(&self) {
        let told = self.workspace.hover(FILE, self.at);
        for part in self.texts("hover") {
            let says = told.as_ref().is_some_and(|told| told.text.contains(part));
            assert!(says, "{}: `{part}` of {told:?}", self.row["name"]);
        }
    }

    fn completes(&self) {
        let items = self.workspace.complete(FILE, self.at).map(|(_, items)| items).unwrap_or_default();
        let labels: Vec<&str> = items.iter().map(|item| item.label.as_str()).collect();
        for label in self.texts("completes") {
            assert!(labels.contains(&label), "{}: `{label}` of {labels:?}", self.row["name"]);
        }
        for label in self.texts("lacks") {
            assert!(!labels.contains(&label), "{}: `{label}`", self.row["name"]);
        }
    }

    fn navigates(&self) {
        if let Some(expected) = self.row["defined"].as_str() {
            let found = self.workspace.definition(FILE, self.at).expect(expected);
            let text = self.workspace.text(&found.file).expect("a file");
            let line = text.lines().nth(found.range.start.line as usize).unwrap_or_default();
            assert_eq!(format!("{}: {}", found.file, line.trim()), expected, "{}", self.row["name"]);
        }
        let edits = self.workspace.rename(FILE, self.at, "other");
        let renamed = self.row["renamed"].as_u64();
        assert_eq!(edits.ok().map(|edits| edits.len() as u64), renamed, "{}", self.row["name"]);
    }
}

#[test]
fn expressions_are_known_wherever_they_stand() {
    let data = parse_values(include_str!("data/places.yaml")).expect("rows");
    let rows = data[0].value.as_array().expect("a list");
    assert!(rows.len() > 15);
    for row in rows {
        let mut row = Row::of(row);
        row.mistakes();
        row.hover();
        row.completes();
        row.navigates();
        row.fixed();
    }
}
