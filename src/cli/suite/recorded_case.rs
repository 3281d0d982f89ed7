//! Runs one case of a suite and records its evaluation, for `admit explain`.

use std::path::Path;

use admit_apiserver::OfflinePlugins;
use admit_policy::Recording;

use super::discover;
use super::prepare::SuiteLoader;
use crate::cli::process::Fault;
use crate::cli::render::suites::CaseReport;

/// Runs one case of a suite, and adds what its expressions did to `recording`. `name` may be omitted if there is only
/// one case.
///
/// # Errors
/// When the suite cannot be run, or `name` does not identify one case.
pub(in crate::cli) fn one(
    (suite, name): (&Path, Option<&str>),
    crds: Option<&Path>,
    plugins: OfflinePlugins,
    recording: &Recording,
) -> Result<CaseReport, Fault> {
    let file = suite.display();
    let sources = discover::sources(&[suite.to_owned()], crds.is_some())?;
    let [source] = sources.as_slice() else {
        return Err(Fault::usage(format!("`{file}` has several suites; name one")));
    };
    let cases = SuiteLoader::new(crds, None, None).plugging(plugins).prepare(source)?.cases;
    let mut wanted = cases.iter().filter(|case| name.is_none_or(|name| case.name == name));
    match (wanted.next(), wanted.next()) {
        (Some(case), None) => Ok(case.run_recorded(recording)),
        (found, _) => {
            let problem = match (name, found) {
                (Some(name), None) => format!("no case of `{file}` is called `{name}`"),
                (Some(name), Some(_)) => format!("several cases of `{file}` are called `{name}`"),
                (None, _) => format!("`{file}` has {} cases", cases.len()),
            };
            let names: Vec<String> = cases.iter().map(|case| format!("\n  {}", case.name)).collect();
            Err(Fault::usage(format!("{problem}; --case takes one of{}", names.concat())))
        }
    }
}
