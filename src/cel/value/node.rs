//! A decoded JSON document, in an arena.

/// One JSON value. Integers keep 64 bits; every other number is a double, as Kubernetes decodes them.
#[derive(Clone, Copy, Debug)]
pub enum Node<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    String(&'a str),
    List(&'a [Node<'a>]),
    Map(&'a MapNode<'a>),
}

/// A JSON object.
#[derive(Clone, Copy, Debug)]
pub struct MapNode<'a> {
    pub(crate) entries: &'a [(&'a str, Node<'a>)],
}
