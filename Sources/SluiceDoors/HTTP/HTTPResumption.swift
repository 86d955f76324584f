import SluiceHTTP
import SluiceWire

/// Where a client of server-sent events resumes, according to `Last-Event-ID`, the ID of the last event that it received.
enum HTTPResumption: Hashable {
  case none
  case behind(HTTPEventID)
  /// The client has received the end of the topic's epoch; nil for the plain ID `end` of earlier versions.
  case ended(of: UInt64?)

  /// - Throws: ``HTTPProblem`` for an ID that gives no position. Beginning at a guessed position would lose or repeat records.
  init(_ request: HTTPRequest) throws(HTTPProblem) {
    guard let id = request.field("last-event-id"), !id.isEmpty else {
      self = .none
      return
    }
    guard !TopicPattern.hasWildcards(request.path.count > 1 ? request.path[1] : "") else {
      throw HTTPProblem(
        400,
        "Last-Event-ID can't give a position in each topic of a pattern; read the topics one by one, or leave it out"
      )
    }
    if id == HTTPEventID.end {
      self = .ended(of: nil)
      return
    }
    if let epoch = HTTPEventID.ended(id) {
      self = .ended(of: epoch)
      return
    }
    guard let id = HTTPEventID(id) else {
      throw HTTPProblem(
        400,
        "Last-Event-ID must be the id of an event of this topic: EPOCH-OFFSET, EPOCH-end, an offset, or end")
    }
    self = .behind(id)
  }
}
