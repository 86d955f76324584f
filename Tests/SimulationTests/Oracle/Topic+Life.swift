import SluiceLog
import SluiceWire

@testable import SluiceBroker

/// The topics of these scenarios don't start over by themselves, so that a topic and its life are one.
extension Topic {
  var epoch: UInt64 { life.epoch }
  var log: TopicLog { life.log }
  var condition: SluiceBroker.TopicLife.Condition { life.condition }
  var ending: Complete.Ending? { life.ending }
}
