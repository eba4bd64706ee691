//! Changes that the page may ask for.

use crate::guard::Refusal;
use http::StatusCode;
use serde_json::{Value, json};
use weir_server::ServerError;
use weir_server::control::Request;

/// Reads a command. It has the form of the control socket, which knows more of them.
pub(crate) fn read(body: &[u8]) -> Result<Request, Refusal> {
    let request: Request = serde_json::from_slice(body).map_err(|error| {
        Refusal::new(StatusCode::BAD_REQUEST, format!("this is not a command: {error}"))
    })?;
    match request {
        Request::Resize { .. }
        | Request::SetTier { .. }
        | Request::SetCache { .. }
        | Request::SetCredits { .. }
        | Request::SetHostCredits { .. }
        | Request::Crash { .. } => Ok(request),
        _ => Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "the page can change tiers, sizes, cache modes and credits, and crash a host; use the \
             control socket for the rest",
        )),
    }
}

/// Returns the change in words, for the list of events.
pub(crate) fn words(request: &Request) -> (String, String) {
    match request {
        Request::Resize { volume, size } => (volume.clone(), format!("resize to {size}")),
        Request::SetTier { volume, tier } => (volume.clone(), format!("tier {tier}")),
        Request::SetCache { volume, mode } => (volume.clone(), format!("cache {mode}")),
        Request::SetCredits { volume, credits } => (volume.clone(), format!("credits {credits}")),
        Request::SetHostCredits { host, credits } => (host.clone(), format!("credits {credits}")),
        Request::Crash { host } => (host.clone(), "crash".to_owned()),
        _ => (String::new(), String::new()),
    }
}

/// Returns the status and the body of an answer.
pub(crate) fn answer(result: Result<Value, ServerError>) -> (StatusCode, Value) {
    match result {
        Ok(value) => (StatusCode::OK, json!({ "ok": value })),
        Err(error) => (StatusCode::UNPROCESSABLE_ENTITY, json!({ "refused": error.to_string() })),
    }
}
