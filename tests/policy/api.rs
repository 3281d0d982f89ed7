//! What users of the package see is what `api.txt` beside its sources lists, and examples show all of its functions.

use std::path::Path;

#[test]
fn the_public_api_is_the_one_that_is_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    if let Err(difference) = testing::api::compare(folder) {
        panic!("{difference}");
    }
}

#[test]
fn a_runnable_example_shows_every_public_function() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(
        testing::api::without_example(folder),
        Ok(Vec::new()),
        "tests/testing/src/api/examples.rs says what counts"
    );
}
