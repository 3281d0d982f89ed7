//! The tables in the heads of modules: `| module | decides | may use |`, a row for each module of the folder.
//!
//! A cell of modules is a list with commas; what stands in parentheses explains a name, and is no name. `everything`,
//! and `nothing of ours`, `std` and the like, stand for themselves.

use std::collections::{BTreeMap, BTreeSet};

/// The table of one folder's modules.
#[derive(Debug)]
pub(crate) struct Table {
    /// The file whose head holds it.
    pub(crate) head: String,
    /// The folder that it is about.
    pub(crate) folder: String,
    rows: BTreeMap<String, May>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum May {
    Everything,
    Only(BTreeSet<String>),
}

/// Words of a third cell that name nothing of ours.
const FOREIGN: [&str; 4] = ["nothing of ours", "none of these", "std", "a kube client"];

const ROW: &str = "//! |";

impl Table {
    /// Reads the table in the head of `head`. `outer` are names that a cell may hold beside those of its own table.
    pub(crate) fn read(head: &str, text: &str, outer: &BTreeSet<String>) -> Result<Self, String> {
        let folder = head.rsplit_once('/').map_or(head, |(folder, _)| folder).to_owned();
        let mut lines = text.lines().take_while(|line| line.starts_with("//!"));
        if !lines.any(|line| cells_of(line).is_some_and(|[_, _, may]| may == "may use")) {
            return Err(format!(
                "{head}: no table; write `| module | decides | may use |` with a row for each module into its head"
            ));
        }
        // The line below the titles separates them.
        let cells = lines.skip(1).map_while(cells_of);
        let mut table = Self { head: head.to_owned(), folder, rows: BTreeMap::new() };
        for [names, decides, may] in cells {
            let names = listed(&names);
            let Some(first) = names.first() else {
                return Err(format!("{head}: a row names no module; write its name into the first cell"));
            };
            if decides.is_empty() {
                return Err(format!("{head}: the row `{first}` says nothing; write what the module decides"));
            }
            for name in names.iter().cloned() {
                if table.rows.insert(name, may_use(&may)).is_some() {
                    return Err(format!("{head}: a module has two rows, one of them `{first}`; remove one"));
                }
            }
        }
        table.knows_what_it_names(outer)?;
        Ok(table)
    }

    fn knows_what_it_names(&self, outer: &BTreeSet<String>) -> Result<(), String> {
        for (module, may) in &self.rows {
            let May::Only(names) = may else { continue };
            if let Some(name) =
                names.iter().find(|name| !self.rows.contains_key(*name) && !outer.contains(*name))
            {
                return Err(format!(
                    "{}: the row `{module}` may use `{name}`, which is no module here; correct the name, or put what explains it into parentheses",
                    self.head
                ));
            }
        }
        Ok(())
    }

    /// What differs between the rows and the modules that there are.
    pub(crate) fn against(&self, modules: &BTreeSet<String>) -> Vec<String> {
        let Self { head, folder, rows } = self;
        let gone = rows.keys().filter(|row| !modules.contains(*row)).map(|row| {
            format!("{head}: the row `{row}` names no module of {folder}; remove or rename the row")
        });
        let untold = modules.iter().filter(|module| !rows.contains_key(*module)).map(|module| {
            format!("{head}: the module `{module}` has no row; add `| `{module}` | what it decides | what it may use |`")
        });
        gone.chain(untold).collect()
    }

    pub(crate) fn modules(&self) -> BTreeSet<String> {
        self.rows.keys().cloned().collect()
    }

    /// Whether the module has a row that lets it use the other one.
    pub(crate) fn allows(&self, module: &str, other: &str) -> bool {
        match self.rows.get(module) {
            Some(May::Everything) => true,
            Some(May::Only(names)) => names.contains(other),
            None => false,
        }
    }
}

/// The three cells of a row.
fn cells_of(line: &str) -> Option<[String; 3]> {
    let row = line.strip_prefix(ROW)?.trim_end().strip_suffix('|')?;
    let mut cells = row.split('|').map(|cell| cell.trim().to_owned());
    Some([cells.next()?, cells.next()?, cells.next()?])
}

/// The names of a cell: without signs of links, explanations and the word `package`.
fn listed(cell: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut plain = String::new();
    for c in cell.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '[' | ']' | '`' => {}
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let names = plain.split([',', ';']).map(|name| name.trim().trim_start_matches("package ").trim());
    names.filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect()
}

fn may_use(cell: &str) -> May {
    let names = listed(cell);
    if names == ["everything"] {
        return May::Everything;
    }
    May::Only(names.into_iter().filter(|name| !FOREIGN.contains(&name.as_str())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "//! Text.\n//!\n//! | module | decides | may use |\n//! |---|---|---|\n\
        //! | [`plan`], `value` | what follows | std |\n//! | `eval` | the value | plan (its output), value |\n//!\n\
        //! | name | means | fault |\n//! |---|---|---|\n//! | `Error` | x | somebody's |\n\nmod plan;\n";

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn read(text: &str) -> Result<Table, String> {
        Table::read("src/x/lib.rs", text, &set(&["admit_cel"]))
    }

    #[test]
    fn a_table_is_read_as_it_is_shown() {
        let table = read(HEAD).unwrap();
        assert_eq!(table.modules(), set(&["plan", "value", "eval"]));
        assert!(table.allows("eval", "plan") && table.allows("eval", "value"));
        assert!(!table.allows("plan", "eval") && !table.allows("value", "plan"));
        assert_eq!(table.against(&set(&["plan", "value", "eval"])), Vec::<String>::new());
        let all = read(&HEAD.replace("plan (its output), value", "everything")).unwrap();
        assert!(all.allows("eval", "plan"));
        let package = "//! | part | decides | may use |\n//! |---|---|---|\n//! | package `admit-x` (`src/x`) | x | admit-cel |\n";
        assert!(read(package).unwrap().allows("admit_x", "admit_cel"));
    }

    #[test]
    fn a_head_without_a_table_is_named_with_the_remedy() {
        for text in ["//! Text.\n", "//! Text.\n\n// | module | decides | may use |\n"] {
            assert!(read(text).unwrap_err().starts_with("src/x/lib.rs: no table; write `| module | decides"));
        }
    }

    #[test]
    fn a_row_that_names_nothing_is_named_with_the_remedy() {
        let told = read(HEAD).unwrap().against(&set(&["plan", "eval"]));
        assert_eq!(
            told,
            ["src/x/lib.rs: the row `value` names no module of src/x; remove or rename the row"]
        );
        let told = read(&HEAD.replace("(its output), value", ", valeu")).unwrap_err();
        assert!(
            told.contains("src/x/lib.rs: the row `eval` may use `valeu`, which is no module here; correct"),
            "{told}"
        );
        let told = read(&HEAD.replace("`eval`", "`plan`")).unwrap_err();
        assert!(told.contains("has two rows, one of them `plan`; remove one"), "{told}");
        let told = read(&HEAD.replace("the value", "")).unwrap_err();
        assert!(told.contains("the row `eval` says nothing; write what"), "{told}");
    }

    #[test]
    fn a_module_without_a_row_is_named_with_the_remedy() {
        let told = read(HEAD).unwrap().against(&set(&["plan", "value", "eval", "cost"]));
        assert_eq!(told.len(), 1);
        assert!(
            told[0].starts_with("src/x/lib.rs: the module `cost` has no row; add `| `cost` |"),
            "{told:?}"
        );
    }
}
