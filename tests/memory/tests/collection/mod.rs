//! A server of large collections that keeps nothing of them.

use std::convert::Infallible;
use std::iter;

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Objects of one collection, each made when it is sent.
#[derive(Clone)]
pub(crate) struct Collection {
    pub(crate) path: &'static str,
    pub(crate) count: usize,
    /// What every object says after its name.
    pub(crate) rest: Bytes,
}

/// A client of a server that serves `collections` and nothing else.
pub(crate) fn client(collections: Vec<Collection>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let served = collections.iter().find(|collection| collection.path == request.uri().path());
        let answer = served.map_or_else(none, |collection| collection.answer(request.uri()));
        async { Ok::<_, Infallible>(answer) }
    });
    Client::new(service, "default")
}

fn none() -> Answer {
    Response::builder().status(404).body(Full::from("none").boxed_unsync()).unwrap()
}

impl Collection {
    fn answer(&self, uri: &http::Uri) -> Answer {
        let number = |name: &str| {
            let pairs = uri.query().unwrap_or_default().split('&');
            pairs.filter_map(|pair| pair.strip_prefix(name)?.parse().ok()).next()
        };
        let from: usize = number("continue=").unwrap_or(0);
        let to = self.count.min(from + number("limit=").unwrap());
        let next = if to < self.count { to.to_string() } else { String::new() };
        let head = format!("{{\"kind\":\"List\",\"metadata\":{{\"continue\":\"{next}\"}},\"items\":[");
        let rest = self.rest.clone();
        let items = (from..to).flat_map(move |n| {
            let comma = if n == from { "" } else { "," };
            let name = format!("{comma}{{\"metadata\":{{\"name\":\"o-{n}\",\"namespace\":\"kube-system\"}},");
            [Bytes::from(name), rest.clone()]
        });
        let text = iter::once(Bytes::from(head)).chain(items).chain(iter::once(Bytes::from("]}")));
        let body = StreamBody::new(stream::iter(text.map(|piece| Ok(Frame::data(piece)))));
        Response::new(body.boxed_unsync())
    }
}
