//! Routes and responses.

use crate::commands;
use crate::guard::{self, Refusal};
use crate::metrics;
use crate::sampler::Board;
use crate::source::Source;
use crate::token::Token;
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Frame, Incoming};
use percent_encoding::percent_decode_str;
use serde_json::json;
use std::cell::RefCell;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use weir_server::{Audit, FrontEnd};

/// Maximum size of a command.
const MAX_BODY: usize = 4 << 10;
/// Timeout for the body of a command.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);
const JSON: &str = "application/json";

/// The files of the page: path, media type, contents.
const FILES: [(&str, &str, &str); 6] = [
    ("/", "text/html; charset=utf-8", include_str!("../assets/index.html")),
    ("/page.js", "text/javascript; charset=utf-8", include_str!("../assets/page.js")),
    ("/page.css", "text/css; charset=utf-8", include_str!("../assets/page.css")),
    ("/icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
    ("/uplot.js", "text/javascript; charset=utf-8", include_str!("../assets/uplot.js")),
    ("/uplot.css", "text/css; charset=utf-8", include_str!("../assets/uplot.css")),
];

/// Headers of every response. The policy permits files of this listener only, and no text of a
/// name can become a script.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// The state that all connections share.
pub(crate) struct Site {
    /// The name under which the listener was told to listen.
    pub(crate) name: String,
    pub(crate) source: Arc<dyn Source>,
    /// The page; `None` if only metrics are served.
    pub(crate) board: Option<Rc<RefCell<Board>>>,
    pub(crate) token: Option<Token>,
    /// The receiver of refused requests.
    pub(crate) audit: Option<Audit>,
    /// Readings and commands at the same time.
    pub(crate) calls: Semaphore,
}

/// The body of a response.
pub(crate) enum Content {
    Whole(Full<Bytes>),
    Stream(mpsc::Receiver<Bytes>),
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(full) => Pin::new(full).poll_frame(context),
            Self::Stream(frames) => {
                frames.poll_recv(context).map(|frame| frame.map(|frame| Ok(Frame::data(frame))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(full) => full.is_end_stream(),
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Self::Whole(full) => full.size_hint(),
            Self::Stream(_) => hyper::body::SizeHint::default(),
        }
    }
}

/// The two ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) local: IpAddr,
    pub(crate) peer: SocketAddr,
}

/// Answers a request that came over a connection with these ends.
pub(crate) async fn answer(
    site: Rc<Site>,
    request: Request<Incoming>,
    ends: Ends,
) -> Result<Response<Content>, Infallible> {
    let (parts, body) = request.into_parts();
    let is_head = parts.method == Method::HEAD;
    let mut response = match site.route(&parts, body, ends.local).await {
        Ok(response) => response,
        Err(refusal) => {
            site.record(&parts, ends.peer, &refusal);
            let mut response = whole("text/plain; charset=utf-8", format!("{}\n", refusal.reason));
            *response.status_mut() = refusal.status;
            if refusal.status == StatusCode::METHOD_NOT_ALLOWED {
                let allowed = HeaderValue::from_static("GET, HEAD, POST");
                response.headers_mut().insert(header::ALLOW, allowed);
            }
            // The rest of its body stays unread, so the connection cannot be used again.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
            response
        }
    };
    for (name, value) in &HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if is_head {
        *response.body_mut() = Content::Whole(Full::default());
    }
    Ok(response)
}

fn whole(media_type: &'static str, body: impl Into<Bytes>) -> Response<Content> {
    let mut response = Response::new(Content::Whole(Full::new(body.into())));
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}

impl Site {
    /// Records a request that was refused for the name, the page or the token that it gave.
    fn record(&self, parts: &Parts, peer: SocketAddr, refusal: &Refusal) {
        let is_of_access = matches!(
            refusal.status,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::MISDIRECTED_REQUEST
        );
        if let Some(audit) = self.audit.as_ref().filter(|_| is_of_access) {
            let what = format!("{} {}", parts.method, parts.uri.path());
            audit.refuse(FrontEnd::Web, &peer, &what, &refusal.reason);
        }
    }

    async fn route(
        &self,
        parts: &Parts,
        body: Incoming,
        local: IpAddr,
    ) -> Result<Response<Content>, Refusal> {
        let host = guard::check_host(parts, &self.name, local)?;
        let is_read = matches!(parts.method, Method::GET | Method::HEAD);
        let path = parts.uri.path();
        let wrong_method = |allowed| {
            let reason = format!("{} {path}: use {allowed}", parts.method);
            Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, reason))
        };
        if path == "/metrics" {
            return if is_read { self.metrics().await } else { wrong_method("GET") };
        }
        let Some(board) = &self.board else { return Err(not_found(path)) };
        if let Some((_, media_type, text)) = FILES.iter().find(|(own, ..)| *own == path) {
            return if is_read { Ok(whole(media_type, *text)) } else { wrong_method("GET") };
        }
        match path {
            "/api/live" | "/api/history" if !is_read => wrong_method("GET"),
            "/api/live" => {
                guard::check_origin(&parts.headers, host)?;
                live(board)
            }
            "/api/history" => {
                guard::check_origin(&parts.headers, host)?;
                history(&board.borrow(), parts.uri.query().unwrap_or_default())
            }
            "/api/command" if parts.method != Method::POST => wrong_method("POST"),
            "/api/command" => {
                guard::check_origin(&parts.headers, host)?;
                guard::check_token(&parts.headers, self.token.as_ref())?;
                self.command(board, parts, body).await
            }
            _ => Err(not_found(path)),
        }
    }

    /// Calls the server, whose hosts' threads answer, without holding up other requests.
    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn Source) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let gone =
            || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server stops; ask again later");
        let _place = self.calls.acquire().await.map_err(|_| gone())?;
        let source = Arc::clone(&self.source);
        tokio::task::spawn_blocking(move || call(&*source)).await.map_err(|_| gone())
    }

    async fn metrics(&self) -> Result<Response<Content>, Refusal> {
        let text = self.call(|source| metrics::exposition(source.status())).await?;
        let text = text.map_err(|error| {
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("metrics: {error}"))
        })?;
        Ok(whole(metrics::MEDIA_TYPE, text))
    }

    async fn command(
        &self,
        board: &Rc<RefCell<Board>>,
        parts: &Parts,
        body: Incoming,
    ) -> Result<Response<Content>, Refusal> {
        let media_type = parts.headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
        if media_type != Some(JSON) {
            let reason = format!("a command is {JSON}");
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
        }
        let read = Limited::new(body, MAX_BODY).collect();
        let body = match tokio::time::timeout(BODY_TIMEOUT, read).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(_)) => {
                let reason = format!("a command has at most {MAX_BODY} bytes");
                return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, reason));
            }
            Err(_) => {
                let reason = "the command did not arrive in time";
                return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, reason));
            }
        };
        let request = commands::read(&body)?;
        let (item, words) = commands::words(&request);
        let result = self.call(move |source| source.command(request)).await?;
        if result.is_ok() {
            let now = weir_wall::calendar() / 1_000_000;
            board.borrow_mut().note(now, item, format!("asked for on a page: {words}"));
        }
        let (status, answer) = commands::answer(result);
        let mut response = whole(JSON, answer.to_string());
        *response.status_mut() = status;
        Ok(response)
    }
}

fn not_found(path: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, format!("{path}: there is nothing here"))
}

fn live(board: &RefCell<Board>) -> Result<Response<Content>, Refusal> {
    let frames = board.borrow_mut().join().ok_or_else(|| {
        let reason = "too many pages are open; close one";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason)
    })?;
    let mut response = Response::new(Content::Stream(frames));
    let media_type = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    Ok(response)
}

/// Returns the samples of `?host=NAME` or `?host=NAME&volume=NAME`.
fn history(board: &Board, query: &str) -> Result<Response<Content>, Refusal> {
    let value = |key: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let own = pairs.filter(|(own, _)| *own == key).map(|(_, value)| value).next()?;
        percent_decode_str(own).decode_utf8().ok().map(|text| text.into_owned())
    };
    let Some(host) = value("host") else {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "name a host: ?host=NAME&volume=NAME"));
    };
    let volume = value("volume");
    match board.history(&host, volume.as_deref()) {
        Some(history) => Ok(whole(JSON, history.to_string())),
        None => {
            let what = volume.unwrap_or(host);
            let reason = json!({ "refused": format!("{what}: no samples yet, or no such name") });
            let mut response = whole(JSON, reason.to_string());
            *response.status_mut() = StatusCode::NOT_FOUND;
            Ok(response)
        }
    }
}
