//! What users of the package see is what `api.txt` beside its sources lists.

use std::path::Path;

#[test]
fn the_public_api_is_the_one_that_is_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    if let Err(difference) = testing::api::compare(folder) {
        panic!("{difference}");
    }
}
