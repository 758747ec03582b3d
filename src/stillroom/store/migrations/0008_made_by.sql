-- How an output was made, for whoever asks why a line stands in the memory; NULL: not noted, or nobody was asked.

-- Which words the model was sent: a hash of the prompt.
ALTER TABLE stage1_outputs ADD COLUMN prompt TEXT;
-- The release of Stillroom, which is that of the rules too.
ALTER TABLE stage1_outputs ADD COLUMN release TEXT;
