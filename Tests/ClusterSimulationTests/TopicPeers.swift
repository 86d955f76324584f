import ReactiveCore
import SluiceClient

/// Publishes numbered records to a topic, and knows which are acknowledged. Unchecked: a world is used by one thread.
final class NumberedProducer: @unchecked Sendable {
  let topic: String
  private(set) var sent = 0
  private(set) var acknowledged = 0
  private(set) var problems: [String] = []
  private let subject: TopicSubject

  init(_ topic: String, _ client: Client, _ settings: TopicSettings) {
    self.topic = topic
    subject = client.subject(topic, as: settings)
  }

  func publish(_ count: Int) {
    for _ in 0..<count {
      let number = sent
      sent += 1
      subject.publish(Message("\(number)")) { [self] result in
        switch result {
        case .success:
          if acknowledged != number { problems.append("\(number) is acknowledged before \(acknowledged)") }
          acknowledged = number + 1
        case .failure(let error): problems.append("\(number) has failed: \(error)")
        }
      }
    }
  }

  var isDone: Bool { acknowledged == sent }
}

/// Takes the numbered records of a topic, and notes what is missing, comes twice, or in another order.
final class NumberedSubscriber: @unchecked Sendable {
  let topic: String
  private(set) var next = 0
  private(set) var problems: [String] = []
  private var subscription: AnyCancellable?

  init(_ topic: String, _ client: Client) {
    self.topic = topic
    subscription = client.topic(topic, from: .earliest).sink { [unowned self] completion in
      problems.append("\(topic) has ended: \(completion)")
    } receiveValue: { [unowned self] record in
      take(record.string)
    }
  }

  private func take(_ text: String) {
    if text != "\(next)", problems.count < 5 { problems.append("\(topic): \(text) came instead of \(next)") }
    next = (Int(text) ?? next) + 1
  }
}
