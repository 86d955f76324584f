import ReactiveCore
import SluiceClient

/// Ends a topic without publishing to it.
enum TopicEnding {
  static func end(_ topic: String, with ending: Subscribers.Completion<ClientError>, _ run: Run) {
    run.connect { client in
      // Asked first: opening a publication would create a topic whose name was mistyped.
      client.topic(show: topic) { result in
        if case .failure(let error) = result { return run.fail(error) }
        let subject = client.subject(topic)
        subject.complete(ending) { result in
          withExtendedLifetime(subject) { run.report(result) { "" } }
        }
      }
    }
  }
}
