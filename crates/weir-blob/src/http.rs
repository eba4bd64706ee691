//! HTTP connections: reads requests, calls the service, sends responses.

use crate::body::{Body, Content, Pace, Reply, Rest, Source};
use crate::fault::{CONTENT_RANGE, Code, Fault};
use crate::head::Head;
use crate::places::{Place, Work};
use crate::service::Service;
use crate::stream::Watched;
use crate::time::Moment;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// Timeout for the head of a request, also of the first one.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for the requests in flight when the server stops.
const PATIENCE: Duration = Duration::from_secs(3);
/// Maximum number of bytes of a refused request that are read before the response is sent.
const DRAIN: usize = 8 << 20;

/// A connection as its requests see it.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) from: IpAddr,
    pub(crate) secure: bool,
    pub(crate) place: Rc<Place>,
}

/// Serves a connection until it ends, or until `stop` changes and the request in flight is
/// answered.
pub(crate) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    client: Client,
    service: Rc<Service>,
    mut stop: watch::Receiver<bool>,
) {
    let place = Rc::clone(&client.place);
    let own = Rc::clone(&service);
    let stream = Watched::new(stream, Box::new(move || own.is_memory_short()));
    let handler = service_fn(move |request| handle(&service, request, &client));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    // A client that has sent all of its requests may close its side.
    builder.half_close(true);
    let mut connection = builder.serve_connection(TokioIo::new(stream), handler);
    let ended = tokio::select! {
        ended = poll_fn(|context| connection.poll_without_shutdown(context)) => Some(ended),
        _ = stop.changed() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            let rest = poll_fn(|context| connection.poll_without_shutdown(context));
            tokio::time::timeout(PATIENCE, rest).await.unwrap_or(Ok(()))
        }
    };
    // A disconnected client is not an error.
    if ended.is_ok() {
        connection.into_parts().io.into_inner().end(place.was_cut()).await;
    }
}

/// The response to a request.
type Answering = Pin<Box<dyn Future<Output = Result<Response<Sending>, Infallible>>>>;

/// Answers in a separate task, so that a disconnected client does not leave a change half done.
///
/// A connection holds only a pointer to it, because an idle connection should take little memory.
fn handle(service: &Rc<Service>, request: Request<Incoming>, client: &Client) -> Answering {
    let work = client.place.begin();
    let answer = answer(Rc::clone(service), request, client.clone());
    let answer = tokio::task::spawn_local(answer);
    Box::pin(async move {
        let answer = answer.await.unwrap_or_else(|_| {
            let mut response = Response::new(Carried::Whole(None));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        });
        Ok(answer.map(|carried| Sending { carried, _work: work }))
    })
}

async fn answer(
    service: Rc<Service>,
    request: Request<Incoming>,
    client: Client,
) -> Response<Carried> {
    let now = Moment(weir_wall::calendar());
    let Client { from, secure, place } = client;
    let (parts, incoming) = request.into_parts();
    let mut body = Body::new(incoming, Pace::DEFAULT);
    let is_head = parts.method == Method::HEAD;
    let echo = Echo::new(&parts.headers);
    let (head, reply) =
        match Head::read(parts, (from, secure, now), |name| service.is_account(name)) {
            Err(fault) => (None, Err(fault)),
            Ok(head) => {
                let reply = match head.method {
                    Method::OPTIONS => preflight(&service, &head),
                    _ => service.answer(&head, &mut body).await,
                };
                (Some(head), reply)
            }
        };
    let refused = reply.is_err();
    if let (Some(head), Err(fault)) = (&head, &reply) {
        service.tell_refused(head, fault);
    }
    let id = service.request_id();
    let mut reply = reply.unwrap_or_else(|fault| refusal(&fault, &id, now, is_head));
    if refused && !body.drain(DRAIN).await {
        reply.set("connection", "close");
        place.cut();
    }
    if let Some(head) = &head
        && head.method != Method::OPTIONS
        && head.header("origin").is_some()
    {
        let properties = service.properties_of(&head.target.account);
        for (name, value) in properties.cors_headers(head) {
            reply.set(name, &value);
        }
    }
    echo.write(&mut reply, &id);
    respond(reply, is_head)
}

/// Headers that every response repeats from its request.
struct Echo {
    version: Option<HeaderValue>,
    client_id: Option<HeaderValue>,
}

impl Echo {
    fn new(headers: &http::HeaderMap) -> Self {
        let short = |value: &&HeaderValue| value.len() <= 1024;
        Self {
            version: headers.get("x-ms-version").cloned(),
            client_id: headers.get("x-ms-client-request-id").filter(short).cloned(),
        }
    }

    fn write(self, reply: &mut Reply, id: &str) {
        reply.set("server", concat!("Weir-Blob/", env!("CARGO_PKG_VERSION")));
        reply.set("x-ms-request-id", id);
        for (name, value) in
            [("x-ms-version", self.version), ("x-ms-client-request-id", self.client_id)]
        {
            if let Some(value) = value {
                reply.headers.insert(HeaderName::from_static(name), value);
            }
        }
    }
}

fn preflight(service: &Service, head: &Head) -> Result<Reply, Fault> {
    let mut reply = Reply::new(200);
    for (name, value) in service.properties_of(&head.target.account).preflight(head)? {
        reply.set(name, &value);
    }
    Ok(reply)
}

/// Builds an error response. That to HEAD has no document, and therefore no type either.
pub(crate) fn refusal(fault: &Fault, id: &str, now: Moment, is_head: bool) -> Reply {
    let mut reply = Reply::new(500);
    reply.status = fault.status();
    if reply.status != StatusCode::NOT_MODIFIED && !is_head {
        reply = reply.xml(fault.body(id, &now.iso()));
    }
    reply.set("x-ms-error-code", fault.code.name());
    if let Some(secs) = fault.retry_after {
        reply.set("retry-after", &secs.to_string());
    }
    if let Some((_, range)) = fault.details.iter().find(|(name, _)| *name == CONTENT_RANGE) {
        reply.set("content-range", range);
    }
    if fault.code == Code::NoAuthenticationInformation {
        reply.set("www-authenticate", "SharedKey");
    }
    reply
}

fn respond(reply: Reply, is_head: bool) -> Response<Carried> {
    let mut response = Response::new(Carried::Whole(None));
    *response.status_mut() = reply.status;
    *response.headers_mut() = reply.headers;
    let body = match reply.content {
        // Content-Length has already been set to that of a GET.
        _ if is_head => Carried::Whole(None),
        Content::Empty => Carried::Whole(None),
        Content::Whole(bytes) => Carried::Whole(Some(bytes)),
        Content::Parts(len, first, rest) => {
            Carried::Parts { left: len, first: Some(first), rest: Some(rest), next: None }
        }
    };
    *response.body_mut() = body;
    response
}

/// The body of a response, whose request is in flight until it is sent.
pub(crate) struct Sending {
    carried: Carried,
    _work: Work,
}

impl hyper::body::Body for Sending {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        hyper::body::Body::poll_frame(Pin::new(&mut self.get_mut().carried), context)
    }

    fn is_end_stream(&self) -> bool {
        hyper::body::Body::is_end_stream(&self.carried)
    }

    fn size_hint(&self) -> SizeHint {
        hyper::body::Body::size_hint(&self.carried)
    }
}

/// The content of a response on a connection.
pub(crate) enum Carried {
    Whole(Option<Bytes>),
    Parts { left: u64, first: Option<Bytes>, rest: Option<Rest>, next: Option<Source> },
}

impl hyper::body::Body for Carried {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Parts { left, first, rest, next } => {
                if let Some(bytes) = first.take() {
                    *left -= bytes.len() as u64;
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                let mut source = match (next.take(), rest.take()) {
                    (Some(source), _) => source,
                    (None, Some(Rest(rest))) => rest(),
                    (None, None) => return Poll::Ready(None),
                };
                match source.as_mut().poll(context) {
                    Poll::Pending => {
                        *next = Some(source);
                        Poll::Pending
                    }
                    Poll::Ready(None) => Poll::Ready(None),
                    Poll::Ready(Some((Ok(bytes), more))) => {
                        *left -= bytes.len() as u64;
                        *rest = Some(more);
                        Poll::Ready(Some(Ok(Frame::data(bytes))))
                    }
                    // Aborts the response, so that the client sees that bytes are missing.
                    Poll::Ready(Some((Err(fault), _))) => {
                        Poll::Ready(Some(Err(io::Error::other(fault))))
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Parts { left, .. } => *left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Self::Parts { left, .. } => SizeHint::with_exact(*left),
        }
    }
}
