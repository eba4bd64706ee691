//! Error responses with the service's own codes.
//!
//! The codes, statuses and messages are those of "Blob service error codes" and "Common REST API
//! error codes" in Microsoft's reference, which clients match on.

use http::StatusCode;
use std::fmt;
use std::fmt::Write as _;

macro_rules! codes {
    ($($name:ident $status:literal $message:literal)*) => {
        /// The service's error codes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each has its message beside it")]
        pub enum Code { $($name,)* }

        impl Code {
            /// Returns the value of `x-ms-error-code`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// Returns the HTTP status.
            #[must_use]
            pub fn status(self) -> StatusCode {
                let status: u16 = match self { $(Self::$name => $status,)* };
                StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }

            /// Returns the message of the reference.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }
        }
    };
}

codes! {
    AppendPositionConditionNotMet 412 "The append position condition specified was not met."
    AuthenticationFailed 403 "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."
    AuthorizationFailure 403 "This request is not authorized to perform this operation."
    AuthorizationPermissionMismatch 403 "This request is not authorized to perform this operation using this permission."
    AuthorizationProtocolMismatch 403 "This request is not authorized to perform this operation using this protocol."
    AuthorizationResourceTypeMismatch 403 "This request is not authorized to perform this operation using this resource type."
    AuthorizationServiceMismatch 403 "This request is not authorized to perform this operation using this service."
    AuthorizationSourceIPMismatch 403 "This request is not authorized to perform this operation using this source IP."
    BlobAlreadyExists 409 "The specified blob already exists."
    BlobArchived 409 "This operation is not permitted on an archived blob."
    BlobImmutableDueToPolicy 409 "This operation is not permitted as the blob is immutable due to a policy."
    BlobIsSealed 409 "The specified blob is sealed, and its contents can't be modified unless the blob is re-created after a delete."
    BlobNotFound 404 "The specified blob does not exist."
    BlobOverwritten 409 "This blob has been recreated since the previous snapshot was taken."
    BlobTierInadequateForContentLength 409 "Specified blob tier size limit cannot be less than content length."
    BlockCountExceedsLimit 409 "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks."
    BlockListTooLong 400 "The block list may not contain more than 50,000 blocks."
    BothCrc64AndMd5HeaderPresent 400 "Both x-ms-content-crc64 header and Content-MD5 header are present."
    CannotChangeToLowerTier 409 "A higher blob tier has already been explicitly set."
    CannotVerifyCopySource 404 "The specified copy source cannot be reached or read."
    ConditionHeadersNotSupported 400 "Condition headers are not supported."
    ConditionNotMet 412 "The condition specified using HTTP conditional header(s) is not met."
    ContainerAlreadyExists 409 "The specified container already exists."
    ContainerNotFound 404 "The specified container does not exist."
    CopyIdMismatch 409 "The specified copy ID did not match the copy ID for the pending copy operation."
    CorsPreflightFailure 403 "CORS not enabled or no matching rule found for this request."
    Crc64Mismatch 400 "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server."
    EmptyMetadataKey 400 "The key for one of the metadata key-value pairs is empty."
    FeatureVersionMismatch 409 "The operation for the blob needs another version of the service."
    IncrementalCopyBlobMismatch 409 "The specified source blob is different than the copy source of the existing incremental copy blob."
    IncrementalCopyOfEarlierSnapshotNotAllowed 409 "The specified snapshot is earlier than the last snapshot copied into the incremental copy blob."
    IncrementalCopySourceMustBeSnapshot 409 "The source for incremental copy request must be a snapshot."
    InfiniteLeaseDurationRequired 412 "The lease ID matched, but the specified lease must be an infinite-duration lease."
    InternalError 500 "The server encountered an internal error. Please retry the request."
    InvalidAuthenticationInfo 400 "The authentication information was not provided in the correct format. Verify the value of Authorization header."
    InvalidBlobOrBlock 400 "The specified blob or block content is invalid."
    InvalidBlobTier 400 "The specified blob tier is invalid."
    InvalidBlobType 409 "The blob type is invalid for this operation."
    InvalidBlockId 400 "The specified block ID is invalid. The block ID must be Base64-encoded."
    InvalidBlockList 400 "The specified block list is invalid."
    InvalidHeaderValue 400 "The value for one of the HTTP headers is not in the correct format."
    InvalidHttpVerb 400 "The HTTP verb specified was not recognized by the server."
    InvalidInput 400 "One of the request inputs is not valid."
    InvalidMd5 400 "The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64-encoded."
    InvalidMetadata 400 "The specified metadata is invalid. It includes characters that are not permitted."
    InvalidOperation 400 "Invalid operation against a blob snapshot."
    InvalidPageRange 416 "The page range specified is invalid."
    InvalidQueryParameterValue 400 "Value for one of the query parameters specified in the request URI is invalid."
    InvalidRange 416 "The range specified is invalid for the current size of the resource."
    InvalidResourceName 400 "The specified resource name contains invalid characters."
    InvalidSourceBlobType 409 "The copy source blob type is invalid for this operation."
    InvalidUri 400 "The requested URI does not represent any resource on the server."
    InvalidXmlDocument 400 "The specified XML is not syntactically valid."
    InvalidXmlNodeValue 400 "The value for one of the XML nodes is not in the correct format."
    LeaseAlreadyBroken 409 "The lease has already been broken and cannot be broken again."
    LeaseAlreadyPresent 409 "There is already a lease present."
    LeaseIdMismatchWithBlobOperation 412 "The lease ID specified did not match the lease ID for the blob."
    LeaseIdMismatchWithContainerOperation 412 "The lease ID specified did not match the lease ID for the container."
    LeaseIdMismatchWithLeaseOperation 409 "The lease ID specified did not match the lease ID for the resource with the specified lease operation."
    LeaseIdMissing 412 "There is currently a lease on the resource and no lease ID was specified in the request."
    LeaseIsBreakingAndCannotBeAcquired 409 "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken."
    LeaseIsBreakingAndCannotBeChanged 409 "The lease ID matched, but the lease is currently in breaking state and cannot be changed."
    LeaseIsBrokenAndCannotBeRenewed 409 "The lease ID matched, but the lease has been broken explicitly and cannot be renewed."
    LeaseLost 412 "A lease ID was specified, but the lease for the resource has expired."
    LeaseNotPresentWithBlobOperation 412 "There is currently no lease on the blob."
    LeaseNotPresentWithContainerOperation 412 "There is currently no lease on the container."
    LeaseNotPresentWithLeaseOperation 409 "There is currently no lease on the resource."
    MaxBlobSizeConditionNotMet 412 "The max blob size condition specified was not met."
    Md5Mismatch 400 "The MD5 value specified in the request did not match with the MD5 value calculated by the server."
    MetadataTooLarge 400 "The size of the specified metadata exceeds the maximum size permitted."
    MissingContentLengthHeader 411 "The Content-Length header was not specified."
    MissingRequiredHeader 400 "An HTTP header that is mandatory for this request is not specified."
    MissingRequiredQueryParameter 400 "A required query parameter was not specified for this request."
    MissingRequiredXmlNode 400 "A required XML node was not specified in the request body."
    NoAuthenticationInformation 401 "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
    NoPendingCopyOperation 409 "There is currently no pending copy operation."
    NotImplemented 501 "The requested operation is not implemented on the specified resource."
    OperationNotAllowedOnIncrementalCopyBlob 409 "The specified operation is not allowed on an incremental copy blob."
    OperationTimedOut 500 "The operation could not be completed within the permitted time."
    OutOfRangeInput 400 "One of the request inputs is out of range."
    OutOfRangeQueryParameterValue 400 "One of the query parameters specified in the request URI is outside the permissible range."
    PendingCopyOperation 409 "There is currently a pending copy operation."
    PreviousSnapshotCannotBeNewer 400 "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value."
    PreviousSnapshotNotFound 409 "The previous snapshot is not found."
    RequestBodyTooLarge 413 "The request body is too large and exceeds the maximum permissible limit."
    RequestUrlFailedToParse 400 "The URL in the request could not be parsed."
    ResourceNotFound 404 "The specified resource does not exist."
    ResourceTypeMismatch 409 "The specified resource type does not match the type of the existing resource."
    SequenceNumberConditionNotMet 412 "The sequence number condition specified was not met."
    SequenceNumberIncrementTooLarge 409 "The sequence number increment cannot be performed because it would result in overflow of the sequence number."
    ServerBusy 503 "The server is currently unable to receive requests. Please retry your request."
    SnapshotsPresent 409 "This operation is not permitted because the blob has snapshots."
    SourceConditionNotMet 412 "The source condition specified using HTTP conditional header(s) is not met."
    TagsTooLarge 400 "The tags specified exceed the maximum permissible limits."
    UnsatisfiableCondition 400 "The request includes an unsatisfiable condition for this operation."
    UnsupportedHeader 400 "One of the HTTP headers specified in the request is not supported."
    UnsupportedHttpVerb 405 "The resource doesn't support the specified HTTP verb."
    UnsupportedQueryParameter 400 "One of the query parameters specified in the request URI is not supported."
}

/// The detail of [`Code::InvalidRange`] that is also the header `Content-Range`.
pub(crate) const CONTENT_RANGE: &str = "ContentRange";
/// The element of a response with the step of the authentication that failed. It never has what the
/// client has sent.
const AUTHENTICATION_STEP: &str = "AuthenticationErrorDetail";

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The service's code.
    pub code: Code,
    /// Further elements of the response, such as the header and value at fault.
    pub details: Vec<(&'static str, String)>,
    /// Value of `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    /// Overrides the code's status.
    status: Option<StatusCode>,
    /// Overrides the code's message.
    message: Option<String>,
    /// Text added to the code's message.
    more: Option<String>,
}

/// The `Result` of this crate.
pub type Result<T> = std::result::Result<T, Fault>;

/// Returns the beginning of a value. A response must not have the size of what the client sent.
fn excerpt(value: &str) -> String {
    const MOST: usize = 256;
    value.char_indices().nth(MOST).map_or_else(
        || value.to_owned(),
        |(end, _)| format!("{}...", value.get(..end).unwrap_or_default()),
    )
}

impl From<Code> for Fault {
    fn from(code: Code) -> Self {
        Self {
            code,
            details: Vec::new(),
            retry_after: None,
            status: None,
            message: None,
            more: None,
        }
    }
}

impl Fault {
    /// An invalid header value.
    #[must_use]
    pub fn header(name: &str, value: &str) -> Self {
        Self::from(Code::InvalidHeaderValue)
            .with("HeaderName", name.to_owned())
            .with("HeaderValue", excerpt(value))
    }

    /// A missing header.
    #[must_use]
    pub(crate) fn missing_header(name: &str) -> Self {
        Self::from(Code::MissingRequiredHeader).with("HeaderName", name.to_owned())
    }

    /// An invalid query parameter.
    #[must_use]
    pub fn query(name: &str, value: &str, reason: &str) -> Self {
        Self::from(Code::InvalidQueryParameterValue)
            .with("QueryParameterName", name.to_owned())
            .with("QueryParameterValue", excerpt(value))
            .with("Reason", reason.to_owned())
    }

    /// An operation that Weir does not support.
    #[must_use]
    pub(crate) fn not_implemented(operation: &str) -> Self {
        let mut fault = Self::from(Code::NotImplemented).with("Operation", operation.to_owned());
        fault.more = Some(format!("Weir does not implement {operation}."));
        fault
    }

    /// A failed authentication. It names the failed step and nothing about the account's contents.
    #[must_use]
    pub fn unauthenticated(detail: &str) -> Self {
        Self::from(Code::AuthenticationFailed).with(AUTHENTICATION_STEP, detail.to_owned())
    }

    /// A storage failure.
    #[must_use]
    pub fn internal(reason: impl fmt::Display) -> Self {
        let mut fault = Self::from(Code::InternalError);
        fault.more = Some(reason.to_string());
        fault
    }

    /// Adds an element to the response.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: String) -> Self {
        self.details.push((name, value));
        self
    }

    /// Adds text to the message.
    #[must_use]
    pub fn because(mut self, reason: impl fmt::Display) -> Self {
        self.more = Some(reason.to_string());
        self
    }

    /// Returns whether the client lacks the right, or did not prove who it is.
    #[must_use]
    pub(crate) const fn is_of_access(&self) -> bool {
        use Code::{
            AuthenticationFailed, AuthorizationFailure, AuthorizationPermissionMismatch,
            AuthorizationProtocolMismatch, AuthorizationResourceTypeMismatch,
            AuthorizationServiceMismatch, AuthorizationSourceIPMismatch, InvalidAuthenticationInfo,
            NoAuthenticationInformation, ResourceNotFound,
        };
        matches!(
            self.code,
            AuthenticationFailed
                | AuthorizationFailure
                | AuthorizationPermissionMismatch
                | AuthorizationProtocolMismatch
                | AuthorizationResourceTypeMismatch
                | AuthorizationServiceMismatch
                | AuthorizationSourceIPMismatch
                | InvalidAuthenticationInfo
                | NoAuthenticationInformation
                // The answer to requests without a signature that need one.
                | ResourceNotFound
        )
    }

    /// Returns the code, and the step of the authentication that failed.
    #[must_use]
    pub(crate) fn reason(&self) -> String {
        let step = self.details.iter().find(|(name, _)| *name == AUTHENTICATION_STEP);
        match step {
            Some((_, step)) => format!("{}: {step}", self.code.name()),
            None => self.code.name().to_owned(),
        }
    }

    /// Overrides the code's status.
    #[must_use]
    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    /// Overrides the code's message, for codes that the service uses with several.
    #[must_use]
    pub(crate) fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Returns the message, without text added to it.
    #[must_use]
    pub(crate) fn message(&self) -> &str {
        self.message.as_deref().unwrap_or_else(|| self.code.message())
    }

    /// Returns the HTTP status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| self.code.status())
    }

    /// Returns the XML body.
    #[must_use]
    pub fn body(&self, request_id: &str, now: &str) -> String {
        let mut out = String::from("\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error>");
        let mut message = self.message().to_owned();
        if let Some(more) = &self.more {
            let _ = write!(message, " {more}");
        }
        let _ = write!(message, "\nRequestId:{request_id}\nTime:{now}");
        let own = [("Code", self.code.name().to_owned()), ("Message", message)];
        for (name, value) in own.iter().chain(&self.details) {
            let value = quick_xml::escape::escape(value.as_str());
            let _ = write!(out, "<{name}>{value}</{name}>");
        }
        out.push_str("</Error>");
        out
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message())?;
        if let Some(more) = &self.more {
            write!(f, " {more}")?;
        }
        self.details.iter().try_for_each(|(name, value)| write!(f, " {name}: {value}"))
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_repeats_the_beginning_of_a_long_value() {
        let long = "\u{e4}".repeat(257);
        let cut = format!(">{}...<", "\u{e4}".repeat(256));
        for fault in [Fault::header("A", &long), Fault::query("a", &long, "it is long")] {
            assert!(fault.body("id", "now").contains(&cut), "{fault}");
        }
        let whole = Fault::header("A", &long[2..]).body("id", "now");
        assert!(whole.contains(&format!(">{}<", &long[2..])), "{whole}");
    }
}
