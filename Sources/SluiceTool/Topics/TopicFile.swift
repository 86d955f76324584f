import Glibc
import SluiceClient
import SluiceCommand
import SluiceWire

/// A file of topics to create, with their settings.
struct TopicFile {
  /// In bytes; more than 100,000 topics with the longest names need.
  private static let longest = 128 << 20
  /// The most refusals that are printed one by one.
  private static let told = 20

  let definitions: [TopicDefinition]

  static let option = CommandOption(
    "file", value: "FILE",
    help:
      "Create all topics in FILE, which has the format of sluice topic list --settings; - for standard input.",
    takesBytes: true)

  /// - Parameter path: "-" for standard input.
  /// - Throws: `UsageError` if it can't be read, or isn't such a file.
  init(_ path: FilePath) throws(UsageError) {
    let bytes: [UInt8]
    do throws(FileBytes.Failure) {
      bytes =
        path == "-"
        ? try FileBytes.read(STDIN_FILENO, limit: Self.longest + 1)
        : try FileBytes.read(path, limit: Self.longest + 1)
    } catch {
      throw UsageError("--file: \(error.message(of: path == "-" ? "standard input" : "\(path)"))")
    }
    guard bytes.count <= Self.longest else {
      throw UsageError("--file: \(path) is longer than \(ByteSize.exact(UInt64(Self.longest)))")
    }
    do throws(ValueError) {
      definitions = try TopicDefinition.read(bytes)
    } catch {
      throw UsageError("--file: \(error)")
    }
  }

  /// Creates the topics, several at a time, and ends the run; with a failure if the broker refuses one of them.
  func create(_ client: Client, _ run: Run, isQuiet: Bool) {
    let settings = Dictionary(uniqueKeysWithValues: definitions.map { ($0.topic, $0.settings) })
    let names = settings.keys.sorted()
    TopicGathering<ClientError?>(of: names) { name, completion in
      client.createTopic(name, settings: settings[name] ?? TopicSettings()) { result in
        // A refusal affects only this topic.
        switch result {
        case .success: completion(.success(.some(nil)))
        case .failure(let error): completion(.success(.some(error)))
        }
      }
    } completion: { result in
      switch result {
      case .failure(let error): run.fail(error)
      case .success(let answers):
        report(
          answers.compactMap { topic, error in error.map { (topic, $0) } }, of: names.count, run, isQuiet)
      }
    }.begin()
  }

  private func report(
    _ refused: [(topic: String, error: ClientError)], of count: Int, _ run: Run, _ isQuiet: Bool
  ) {
    for (topic, error) in refused.prefix(Self.told) {
      run.note("\(ShownText.line(topic)): \(error)")
    }
    if refused.count > Self.told { run.note("and \(refused.count - Self.told) more") }
    guard refused.isEmpty else {
      return run.finish(
        .failure, "\(refused.count) of \(StoreTable.counted(UInt64(count), "topic")) couldn't be created")
    }
    if !isQuiet {
      run.note(
        "\(StoreTable.counted(UInt64(count), "topic")) \(count == 1 ? "exists" : "exist") with these settings"
      )
    }
    run.finish(.success)
  }
}
