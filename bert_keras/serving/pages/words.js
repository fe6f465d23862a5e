// What the page says, in its two languages, and what it begins with.
"use strict";
const WORDS = {
  en: {
    model: "Model", ask: "Ask", tokens: "Tokens and ids", api: "API", waiting: "…", other: "中文",
    noAnswer: "no answer", text: "Text", question: "Question", context: "Context",
    choices: "Choices, one a line", first: "First text", second: "Second text",
    texts: "Texts, one a line", follows: "follows", random: "does not follow", nothing: "Nothing found.",
    classify: "Which label does the text have?", tag: "Which words are names, and of what?",
    answer: "Where does the passage answer the question?", choose: "Which choice fits best?",
    fill_mask: "What could stand in place of {mask}?", embed: "How alike are the texts?",
    is_next: "Does the second text follow the first?", is_replaced: "Which tokens were replaced?",
  },
  zh: {
    model: "模型", ask: "提交", tokens: "词元与编号", api: "接口", waiting: "……", other: "English",
    noAnswer: "文中没有答案", text: "文本", question: "问题", context: "文章",
    choices: "选项，每行一个", first: "前一句", second: "后一句",
    texts: "文本，每行一条", follows: "是下一句", random: "不是下一句", nothing: "没有找到。",
    classify: "这段文本属于哪一类？", tag: "哪些词是名称，属于哪一类？",
    answer: "文章中哪一段回答了问题？", choose: "哪个选项最合适？",
    fill_mask: "{mask} 处可以填什么？", embed: "这些文本有多相似？",
    is_next: "第二句接在第一句之后吗？", is_replaced: "哪些词元被替换过？",
  },
};
const EXAMPLES = {
  text: "I would see it again.", question: "Who lived in London?",
  context: "Ada Lovelace lived in London.", choices: "It barked.\nIt rained.",
  first: "She opened the door.", second: "Nobody was there.",
  texts: "A cat sits on the mat.\nA kitten rests on a rug.\nShares fell on Monday.",
};
