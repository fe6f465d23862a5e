// What the page says, in its two languages, and what it begins with.
"use strict";
const WORDS = {
  en: {
    model: "Model", ask: "Ask", tokens: "Tokens and ids", api: "API", waiting: "…", other: "中文",
    noAnswer: "no answer", text: "Text", pair: "Second text, where the model reads pairs", question: "Question", context: "Context",
    choices: "Choices, one a line", first: "First text", second: "Second text",
    texts: "Texts, one a line", follows: "follows", random: "does not follow",
    classify: "Which label does the text have?", tag: "Which words are names, and of what?",
    answer: "Where does the passage answer the question?", choose: "Which choice fits best?",
    fill_mask: "What could stand in place of {mask}?", embed: "How alike are the texts?",
    token_weights: "Which tokens is the text about?", token_vectors: "How alike are the texts, token by token?",
    is_next: "Does the second text follow the first?", is_replaced: "Which tokens were replaced?",
    saliency: "Which words spoke for a label", label: "Label", moved: "The logit: {from} where all is masked, {to} as read.",
    attention: "Which token looks at which", layer: "Layer", head: "Head", mean: "mean of all",
    point: "Point at a token on the left, or go there with the Tab key.", looks: "{token} looks at {others}",
    search: "Search a file", file: "A text file, read a line at a time", query: "What to look for", find: "Search",
    reading: "{done} of {all} lines read", onlyFirst: "Only the first {most} lines are read.",
    tooLarge: "A file has at most {most} MB.",
  },
  zh: {
    model: "模型", ask: "提交", tokens: "词元与编号", api: "接口", waiting: "……", other: "English",
    noAnswer: "文中没有答案", text: "文本", pair: "第二段文本（模型读句对时填写）", question: "问题", context: "文章",
    choices: "选项，每行一个", first: "前一句", second: "后一句",
    texts: "文本，每行一条", follows: "是下一句", random: "不是下一句",
    classify: "这段文本属于哪一类？", tag: "哪些词是名称，属于哪一类？",
    answer: "文章中哪一段回答了问题？", choose: "哪个选项最合适？",
    fill_mask: "{mask} 处可以填什么？", embed: "这些文本有多相似？",
    token_weights: "这段文本讲的是哪些词元？", token_vectors: "逐个词元比较，这些文本有多相似？",
    is_next: "第二句接在第一句之后吗？", is_replaced: "哪些词元被替换过？",
    saliency: "哪些词支持某个标签", label: "标签", moved: "对数几率：全部遮盖时 {from}，读入原文后 {to}。",
    attention: "词元之间的注意力", layer: "层", head: "注意力头", mean: "所有头的平均",
    point: "把指针移到左边的词元上，或用 Tab 键选中它。", looks: "{token} 关注 {others}",
    search: "在文件中查找", file: "文本文件，逐行读取", query: "要找的内容", find: "查找",
    reading: "已读取 {done} / {all} 行", onlyFirst: "只读取前 {most} 行。",
    tooLarge: "文件最大 {most} MB。",
  },
};
const EXAMPLES = {
  text: "The actors are wonderful, but the story is dull.", tag: "Ada Lovelace lived in London.", pair: "", question: "Who lived in London?",
  context: "Ada Lovelace lived in London.", choices: "It barked.\nIt rained.",
  first: "She opened the door.", second: "Nobody was there.",
  texts: "A cat sits on the mat.\nA kitten rests on a rug.\nShares fell on Monday.",
};
