import FoundationEssentials
import SluiceIO
import SluiceNATS
import SluiceSimulation

/// Requests below `$JS.API.`
extension EngineModel {
  private struct Purge: Decodable {
    var filter: String?
    var seq: UInt64?
  }

  struct Get: Decodable {
    var seq: UInt64?
    var last_by_subj: String?
    var next_by_subj: String?
    var batch: Int?
    var max_bytes: Int?
    var multi_last: [String]?
    var up_to_seq: UInt64?
  }

  /// - Returns: whether anything listens to the subject; a request may still get no reply.
  func serve(_ request: ModelMessage, from server: EngineServerModel) -> Bool {
    if world.random.oneIn(faults.silentOneIn) { return true }
    let words = request.subject.split(separator: ".").dropFirst(2).map(String.init)
    switch (words.first, words.count) {
    case ("INFO", 1): answer(request, accountInfo, from: server)
    case ("STREAM", 3): serveStream(words[1], words[2], request, from: server)
    case ("STREAM", 4) where words[1] == "MSG" && words[2] == "GET":
      guard let stream = streams[words[3]] else {
        return fail(request, 404, 10059, "stream not found", server)
      }
      serveLeaderRead(request, of: stream)
    case ("DIRECT", 3): return serveRead(words[2], request, from: server)
    case ("CONSUMER", 4):
      guard let stream = streams[words[2]] else {
        return fail(request, 404, 10059, "stream not found", server)
      }
      if words[1] == "CREATE" {
        stream.createConsumer(words[3], request)
      } else if let consumer = stream.consumers.removeValue(forKey: words[3]) {
        consumer.end()
        answer(request, #"{"success":true}"#, from: server)
      } else {
        return fail(request, 404, 10014, "consumer not found", server)
      }
    default: return false
    }
    return true
  }

  private func fail(
    _ request: ModelMessage, _ code: Int, _ number: Int, _ text: String, _ server: EngineServerModel
  ) -> Bool {
    answer(
      request, #"{"error":{"code":\#(code),"err_code":\#(number),"description":"\#(text)"}}"#, from: server)
    return true
  }

  private var accountInfo: String {
    let bytes = streams.values.reduce(0) { $0 + $1.committed.bytes }
    let consumers = streams.values.reduce(0) { $0 + $1.consumers.count }
    return #"{"memory":0,"storage":\#(bytes),"streams":\#(streams.count),"consumers":\#(consumers),"#
      + #""limits":{"max_memory":-1,"max_storage":-1,"max_streams":-1,"max_consumers":-1}}"#
  }

  private func serveStream(
    _ verb: String, _ name: String, _ request: ModelMessage, from server: EngineServerModel
  ) {
    switch verb {
    case "CREATE", "UPDATE":
      guard hasQuorum else { return }
      guard
        let configuration = try? JSONDecoder().decode(StreamConfiguration.self, from: Data(request.payload))
      else { return _ = fail(request, 400, 10025, "invalid JSON", server) }
      verb == "CREATE"
        ? create(configuration, request, from: server) : update(configuration, request, from: server)
    default:
      guard let stream = streams[name] else {
        return _ = fail(request, 404, 10059, "stream not found", server)
      }
      switch verb {
      case "INFO":
        stream.askLeader { [self] leader, view in answer(request, info(of: stream, view), from: leader) }
      case "DELETE":
        guard hasQuorum else { return }
        streams[name] = nil
        for consumer in stream.consumers.values { consumer.end() }
        answer(request, #"{"success":true}"#, from: server)
      case "PURGE":
        let purge = try? JSONDecoder().decode(Purge.self, from: Data(request.payload))
        stream.askLeader { [self] leader, _ in
          guard leader === stream.leader else { return }
          let count = stream.purgeCount(purge?.filter, before: purge?.seq)
          stream.propose(.purge(pattern: purge?.filter, before: purge?.seq), as: leader) { [self] in
            answer(request, #"{"success":true,"purged":\#(count)}"#, from: leader)
          }
        }
      default: _ = fail(request, 404, 10014, "unknown request", server)
      }
    }
  }

  private func create(
    _ configuration: StreamConfiguration, _ request: ModelMessage, from server: EngineServerModel
  ) {
    if let stream = streams[configuration.name] {
      guard stream.configuration == Self.completed(configuration) else {
        return _ = fail(
          request, 400, 10058, "stream name already in use with a different configuration", server)
      }
      return stream.askLeader { [self] leader, view in answer(request, info(of: stream, view), from: leader) }
    }
    let taken = streams.values.contains { stream in
      stream.subjects.contains { own in
        configuration.subjects.contains { NATSSubject.matches($0, own) || NATSSubject.matches(own, $0) }
      }
    }
    guard !taken else {
      return _ = fail(request, 400, 10065, "subjects overlap with an existing stream", server)
    }
    let stream = EngineStream(Self.completed(configuration), of: self)
    streams[configuration.name] = stream
    stream.askLeader { [self] leader, view in answer(request, info(of: stream, view), from: leader) }
  }

  private func update(
    _ configuration: StreamConfiguration, _ request: ModelMessage, from server: EngineServerModel
  ) {
    guard let stream = streams[configuration.name] else {
      return _ = fail(request, 404, 10059, "stream not found", server)
    }
    stream.askLeader { [self] leader, _ in
      guard leader === stream.leader else { return }
      stream.propose(.configure(Self.completed(configuration)), as: leader) { [self] in
        answer(request, info(of: stream, stream.committed), from: leader)
      }
    }
  }

  /// The configuration completed with the server's defaults.
  private static func completed(_ configuration: StreamConfiguration) -> StreamConfiguration {
    var configuration = configuration
    if configuration.duplicateWindow == nil { configuration.duplicateWindow = 120_000_000_000 }
    return configuration
  }

  private struct Info: Encodable {
    struct State: Encodable {
      var messages: Int
      var bytes: Int
      var first_seq: UInt64
      var last_seq: UInt64
    }

    struct Cluster: Encodable {
      struct Replica: Encodable {
        var name: String
        var current: Bool
        var offline: Bool
      }

      var leader: String?
      var replicas: [Replica]
    }

    var config: StreamConfiguration
    var state: State
    var cluster: Cluster
  }

  private func info(of stream: EngineStream, _ view: StreamContents) -> String {
    let info = Info(
      config: view.configuration,
      state: .init(
        messages: view.count, bytes: view.bytes, first_seq: view.firstSequence, last_seq: view.lastSequence),
      cluster: .init(
        leader: stream.leader?.name,
        replicas: servers.filter { $0 !== stream.leader }.map {
          .init(name: $0.name, current: $0.isAvailable, offline: !$0.isRunning)
        }))
    return EngineJSON.text(of: info) ?? "{}"
  }
}
