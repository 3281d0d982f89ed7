//! The page that is made from the rows is the one in the tree.

use crate::rows::root;

#[test]
fn the_page_is_what_the_rows_say() {
    let path = root().join("deploy/RELEASES.md");
    let made = admit_analysis::releases::page();
    if std::env::var_os("ADMIT_BLESS").is_some() {
        std::fs::write(&path, &made).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).expect("deploy/RELEASES.md");
    assert_eq!(written, made, "renew it with ADMIT_BLESS=1");
}
