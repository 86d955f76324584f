import SluiceIO
import SluiceWire

/// A question to the broker, and who waits for the answer.
struct Request: Sendable {
  enum Question: Sendable {
    case topics(TopicList)
    case show(TopicShow)
    case create(TopicCreate)
    case delete(TopicDelete)
    case connect(TopicConnect)
    case disconnect(TopicDisconnect)
    case ping
  }

  enum Answer: Sendable {
    case topics(Topics)
    case info(TopicInfo)
    case done
    /// How long the round trip took.
    case pong(Duration)
  }

  var question: Question
  /// Called on the loop, once.
  var completion: @Sendable (Result<Answer, ClientError>) -> Void

  /// The topic that it is about.
  var topic: String? {
    switch question {
    case .show(let frame): frame.topic
    case .create(let frame): frame.topic
    case .delete(let frame): frame.topic
    case .connect(let frame): frame.topic
    case .disconnect(let frame): frame.topic
    case .topics, .ping: nil
    }
  }
}
