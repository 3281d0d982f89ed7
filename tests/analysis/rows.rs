//! Reads the tables of `data`: a row a line, fields between tabs, `#` before what is said about them.

use std::path::Path;

use admit_cel::Version;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).expect("the package stands in src")
}

/// The rows of a table, each with as many fields as asked for.
pub(crate) fn rows<const N: usize>(file: &str) -> Vec<[String; N]> {
    let path = root().join("tests/analysis/data").join(file);
    let text = std::fs::read_to_string(&path).expect(file);
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    rows.map(|line| {
        let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        fields.try_into().unwrap_or_else(|fields| panic!("{file}: {fields:?}"))
    })
    .collect()
}

/// `1.31`, and a dash for a version before all.
pub(crate) fn version(text: &str) -> Version {
    let minor = text.strip_prefix("1.").map_or(0, |minor| minor.parse().expect(text));
    Version(1, minor)
}
