import ReactiveCore

// How the owners of streams end when the client does, and which errors end the client.
extension ClientCore {
  /// Ends the owner of a stream.
  func end(_ attachment: Attachment, _ error: ClientError) {
    switch attachment {
    case .subscription(let subscription):
      if error.code == .closed {
        subscription.fail(error)
      } else {
        subscription.receive(completion: .failure(error))
      }
    case .publication(let publication): publication.end(.failure(error))
    case .request(let request): request.complete(.failure(error), loop)
    }
  }
}

extension ClientError {
  /// Whether another attempt with the same credentials would fail with the same code.
  var refusesClient: Bool {
    [
      .authenticationRequired, .authenticationFailed, .credentialsExpired, .insecureConnection,
      .certificateRefused,
    ].contains(code)
  }
}
