import FoundationEssentials
import SluiceIO
import SluiceNATS
import SluiceSimulation

/// Reads of the leader, and of any replica.
extension EngineModel {
  private struct Stored: Encodable {
    struct Message: Encodable {
      var subject: String
      var seq: UInt64
      var hdrs: Data?
      var data: Data?
      var time = "2026-01-01T00:00:00Z"
    }

    var message: Message
  }

  func serveLeaderRead(_ request: ModelMessage, of stream: EngineStream) {
    guard let get = try? JSONDecoder().decode(Get.self, from: Data(request.payload)) else { return }
    stream.askLeader { [self] leader, view in
      func answer(_ json: String) {
        // The server queues the reply: messages stored after the read may reach the client before it.
        run(on: leader, after: world.random.next(in: faults.answer)) { [self] in
          self.answer(request, json, from: leader)
        }
      }
      guard let found = Self.one(get, in: view) else {
        return answer(#"{"error":{"code":404,"err_code":10037,"description":"no message found"}}"#)
      }
      let block = found.message.block
      let stored = Stored(
        message: .init(
          subject: found.subject, seq: found.sequence, hdrs: block.isEmpty ? nil : Data(block),
          data: found.payload.isEmpty ? nil : Data(found.payload)))
      guard let json = EngineJSON.text(of: stored) else { return }
      answer(json)
    }
  }

  private static func one(_ get: Get, in view: StreamContents) -> StreamContents.Message? {
    if let subject = get.last_by_subj { return view.last(of: subject) }
    if let pattern = get.next_by_subj { return view.matching(pattern, from: get.seq ?? 1).first }
    return get.seq.flatMap { view[$0] }
  }

  /// - Returns: whether such a stream with direct reads exists.
  func serveRead(_ name: String, _ request: ModelMessage, from server: EngineServerModel) -> Bool {
    guard let stream = streams[name], stream.configuration.allowsDirectReads else { return false }
    let get = try? JSONDecoder().decode(Get.self, from: Data(request.payload))
    // It takes minutes until the others exclude an isolated replica; until then reads sent to it get no reply.
    if servers.contains(where: { $0.isRunning && $0.isIsolated }),
      world.random.oneIn(faults.isolatedReadOneIn)
    {
      lostReads += 1
      return true
    }
    // Usually the server nearest to the client replies.
    let others = servers.filter { $0.isRunning && !$0.isIsolated }
    let reader = world.random.oneIn(4) ? others[world.random.next(in: 0...(others.count - 1))] : server
    run(on: reader) { [self] in read(get, of: stream, at: reader, request) }
    return true
  }

  private func read(
    _ get: Get?, of stream: EngineStream, at server: EngineServerModel, _ request: ModelMessage
  ) {
    func status(_ text: String, _ headers: [(String, String)] = []) {
      answer(request, ModelMessage("", status: text, headers: headers), from: server)
    }
    guard let get else { return status("408 Empty Request") }
    let view = stream.view(of: server)
    if let patterns = get.multi_last {
      let end = get.up_to_seq.flatMap { $0 == 0 ? nil : $0 } ?? view.lastSequence
      let found = view.lastMessages(matching: patterns, upTo: end).filter { $0.sequence >= get.seq ?? 0 }
      guard !found.isEmpty else { return status("404 No Results") }
      guard found.count <= JetStream.maximumSubjects else { return status("413 Too Many Results") }
      return send(
        found, get, of: stream, from: server, request, last: [("Nats-UpTo-Sequence", "\(end)")])
    }
    guard get.batch != nil || get.max_bytes != nil else {
      guard let found = Self.one(get, in: view) else { return status("404 Message Not Found") }
      return answer(request, Self.direct(found, of: stream.name), from: server)
    }
    let found = view.matching(get.next_by_subj ?? ">", from: get.seq ?? 1)
    guard !found.isEmpty else { return status("404 Message Not Found") }
    send(found, get, of: stream, from: server, request, last: [])
  }

  private func send(
    _ found: [StreamContents.Message], _ get: Get, of stream: EngineStream, from server: EngineServerModel,
    _ request: ModelMessage, last: [(String, String)]
  ) {
    var sent = 0
    var bytes = 0
    var previous: UInt64 = 0
    for message in found.prefix(get.batch ?? 1_024) {
      if sent > 0, let limit = get.max_bytes, bytes >= limit { break }
      let pending = found.count - sent - 1
      answer(
        request,
        Self.direct(
          message, of: stream.name,
          [("Nats-Num-Pending", "\(pending)"), ("Nats-Last-Sequence", "\(previous)")]), from: server)
      sent += 1
      bytes += message.size
      previous = message.sequence
    }
    answer(
      request,
      ModelMessage(
        "", status: "204 EOB",
        headers: [
          ("Nats-Num-Pending", "\(found.count - sent)"), ("Nats-Last-Sequence", "\(previous)"),
        ] + last), from: server)
  }

  private static func direct(
    _ stored: StreamContents.Message, of stream: String, _ more: [(String, String)] = []
  ) -> ModelMessage {
    let own =
      [
        ("Nats-Stream", stream), ("Nats-Subject", stored.subject), ("Nats-Sequence", "\(stored.sequence)"),
        ("Nats-Time-Stamp", "2026-01-01T00:00:00Z"),
      ] + more
    return ModelMessage(
      "", headers: stored.message.headers.map { ($0.name, $0.value) } + own, payload: stored.payload)
  }
}
